"""What a ring of processes costs: CPU time of a rank, and bytes that it sends.

"time": `ring_attention` forwards, 4 heads of 64 features, float32, on so many
    ranks, each a process with one thread: the CPU time of a rank, with all
    that sending takes, the mean of the ranks, the least of several tries. It
    is CPU time, which a busy neighbour hardly lengthens; so how much of a
    hop hides behind calculating is not in it.
"hop": a block of keys and values of so many tokens goes once round, and
    nobody calculates.
"sent": the bytes that leave a rank. They are counted; nothing is timed.
"""

import time
from collections.abc import Callable

import torch
import torch.distributed as dist

from selfattn.devices.ring import ring_attention
from selfattn.devices.world import Sent, on_ranks

ABOUT = (
    "ring_attention forwards, 4 heads of 64 features, float32, gloo on one "
    "machine, one thread a rank: CPU time of a rank in ms, mean of the "
    "ranks, least of several tries (time); a block of keys and values sent "
    "once round, likewise (hop); and bytes that leave a rank, counted (sent)."
)
SEEDS = range(5)
HEADS, D = 4, 64
RANKS, LENGTHS = (1, 2, 4), (512, 1024, 2048, 4096, 8192)
SETTINGS = [
    *(
        {"part": "time", "ranks": ranks, "n": n}
        for ranks in RANKS
        for n in LENGTHS
    ),
    *(
        {"part": "hop", "ranks": ranks, "n": n}
        for ranks in (2, 4)
        for n in (1024, 4096, 16_384)
    ),
    *({"part": "sent", "ranks": ranks, "n": 512} for ranks in (2, 4)),
]
SMALLEST = {"part": "sent", "ranks": 2, "n": 512}
TOLERANCE = 0.0  # counted
TRIES = 5


def run(seed: int, *, part: str, ranks: int, n: int) -> dict[str, float]:
    """One row of the file: the numbers of one part."""
    torch.manual_seed(seed)
    q, k, v = torch.randn(3, HEADS, n, D)

    def count(rank: int, p: int) -> float:
        """The bytes that leave a rank."""
        parts = [x.chunk(p, dim=-2)[rank] for x in (q, k, v)]
        with Sent() as sent:
            ring_attention(*parts)
        return sent.bytes["send"]

    def attend(rank: int, p: int) -> float:
        """The CPU time of a rank."""
        parts = [x.chunk(p, dim=-2)[rank].contiguous() for x in (q, k, v)]
        return least(lambda: ring_attention(*parts))

    def hop(rank: int, p: int) -> float:
        """The CPU time of sending alone."""
        block = torch.cat((k, v), dim=-1).chunk(p, dim=-2)[rank].contiguous()
        return least(lambda: once_round(block, rank, p))

    work = {"sent": count, "time": attend, "hop": hop}[part]
    found = on_ranks(work, ranks, timeout=120.0)
    return {"bytes" if part == "sent" else "ms": sum(found) / ranks}


def once_round(block: torch.Tensor, rank: int, p: int) -> None:
    """Every rank sees every block, and does nothing with it."""
    for _ in range(p - 1):
        coming = torch.empty_like(block)
        both = (
            dist.P2POp(dist.isend, block, (rank + 1) % p),
            dist.P2POp(dist.irecv, coming, (rank - 1) % p),
        )
        for work in dist.batch_isend_irecv(list(both)):
            work.wait()
        block = coming


def least(f: Callable[[], object]) -> float:
    """Milliseconds of this process's CPU, the least of some tries."""
    best = float("inf")
    for _ in range(TRIES + 1):  # the first is for warming up
        dist.barrier()
        start = time.process_time()
        f()
        best = min(best, 1000 * (time.process_time() - start))
    return best
