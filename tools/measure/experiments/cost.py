"""What costs time, beside what costs bytes: ratios taken side by side.

All times are CPU time on one thread, the least of several tries, and what is
compared is tried in turns in one process, so that a busy neighbour slows all
alike. Absolute times belong to the machine; the ratios travel better.

"faults": naive attention against PyTorch's fused kernel, 8 heads of 64
    features, float32, in a fresh process. With the C library's default
    settings, memory of 32 MiB and more is handed back to the system after
    every use, and faulted in anew, page by page; "kept" tells it not to.
"steps": the steps of naive attention one by one, in such a process, each into
    memory that is there already, against the whole fused kernel.
"layer": calls of `torch.nn.MultiheadAttention`, 512 features, 8 heads, in
    evaluation, against this book's layer on the fused kernel.
"training": forward and backward through 8 blocks, with checkpoints against
    without.
"precision": bfloat16 against float32.
"padding": 2048 texts of 5 to 200 tokens in batches of 32, in random order or
    in order of length. Nothing is timed here.
"""

import functools
import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from selfattn.cost import allocated_bytes
from selfattn.dot_product import fused_attention
from selfattn.multihead import MultiHeadAttention

ABOUT = (
    "CPU time on one thread, least of several tries, side by side in one "
    "process, as a ratio: naive attention to the fused kernel (faults), "
    "each of its steps likewise (steps), "
    "torch.nn.MultiheadAttention to this book's layer (layer), training with "
    "checkpoints to without (training), bfloat16 to float32 (precision); "
    "bytes of PyTorch's allocator in MiB; and tokens that are padding, as a "
    "share, and entries of the tables of scores, in millions (padding)."
)
SEEDS = range(5)
LENGTHS = (512, 1024, 2048, 4096)
STEPS = ("scores", "scale", "softmax", "average")
CALLS = {
    "default call": ({}, True),
    "no weights": ({"need_weights": False}, True),
    "default call, fast path off": ({}, False),
    "no weights, fast path off": ({"need_weights": False}, False),
}
SETTINGS = [
    *(
        {"part": "faults", "what": heap, "n": n}
        for heap in ("default", "kept")
        for n in LENGTHS
    ),
    *({"part": "steps", "what": step, "n": 2048} for step in STEPS),
    *({"part": "layer", "what": call, "n": 2048} for call in CALLS),
    {"part": "training", "what": "checkpoints", "n": 256},
    {"part": "precision", "what": "matrix product", "n": 1024},
    {"part": "precision", "what": "fused attention", "n": 2048},
    {"part": "padding", "what": "random", "n": 200},
    {"part": "padding", "what": "sorted", "n": 200},
]
SMALLEST = {"part": "padding", "what": "sorted", "n": 200}
TOLERANCE = 1e-4  # counted, not measured, but written with four places

HEADS, D_HEAD = 8, 64
KEPT = {  # of the C library: never give memory back
    "MALLOC_MMAP_THRESHOLD_": str(4 * 2**30),
    "MALLOC_TRIM_THRESHOLD_": str(16 * 2**30),
}
MIB = 2**20


def run(seed: int, *, part: str, what: str, n: int) -> dict[str, float]:
    """One row of the file: the numbers of one part."""
    torch.manual_seed(seed)
    return PARTS[part](seed, what, n)


def in_turns(
    *arms: Callable[[], object], tries: int = 3
) -> list[tuple[float, int]]:
    """CPU seconds and page faults of each arm: the least of some tries."""
    best = [(float("inf"), 0)] * len(arms)
    for turn in range(tries + 1):
        for i, arm in enumerate(arms):
            faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
            start = time.process_time()
            arm()
            took = time.process_time() - start
            after = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
            if turn:  # the first is for warming up
                best[i] = min(best[i], (took, after - faults))
    return best


def naive(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Attention as one would write it down."""
    scores = q @ k.mT * q.shape[-1] ** -0.5
    weights = scores.softmax(dim=-1)
    return weights @ v


def compare_heads(seed: int) -> list[dict[str, float]]:
    """For each length, naive against fused attention. See "faults"."""
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    rows = []
    for n in LENGTHS:
        q, k, v = torch.randn(3, 1, HEADS, n, D_HEAD)
        (fused, _), (slow, faults) = in_turns(
            lambda q=q, k=k, v=v: F.scaled_dot_product_attention(q, k, v),
            lambda q=q, k=k, v=v: naive(q, k, v),
        )
        rows.append(
            {
                "ratio": slow / fused,
                "fused_ms": 1000 * fused,
                "naive_ms": 1000 * slow,
                "faults": faults,
            }
        )
    return rows


def compare_steps(seed: int) -> dict[str, dict[str, float]]:
    """Each step of naive attention against fused attention. See "steps"."""
    torch.set_num_threads(1)
    torch.manual_seed(seed)
    q, k, v = torch.randn(3, 1, HEADS, 2048, D_HEAD)
    scores = q @ k.mT
    weights = scores.softmax(dim=-1)
    table, output = torch.empty_like(scores), torch.empty_like(q)
    (fused, _), *steps = in_turns(
        lambda: F.scaled_dot_product_attention(q, k, v),
        lambda: torch.matmul(q, k.mT, out=table),
        lambda: torch.mul(scores, D_HEAD**-0.5, out=table),
        lambda: torch.softmax(scores, -1, out=table),
        lambda: torch.matmul(weights, v, out=output),
    )
    return {
        name: {"ratio": took / fused}
        for name, (took, _) in zip(STEPS, steps, strict=True)
    }


@functools.cache
def in_fresh_process(what: str, seed: int, heap: str) -> Any:
    """What `compare_heads` or `compare_steps` says, with a heap as asked."""
    done = subprocess.run(
        [sys.executable, __file__, what, str(seed)],
        env=os.environ | (KEPT if heap == "kept" else {}),
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


def page_faults(seed: int, what: str, n: int) -> dict[str, float]:
    """Naive against fused, with or without giving memory back."""
    return in_fresh_process("heads", seed, what)[LENGTHS.index(n)]


def one_step(seed: int, what: str, n: int) -> dict[str, float]:
    """One step of naive attention, memory being there."""
    return in_fresh_process("steps", seed, "kept")[what]


def layer(seed: int, what: str, n: int) -> dict[str, float]:
    """One call of PyTorch's layer against this book's, equal weights."""
    theirs = nn.MultiheadAttention(512, 8, batch_first=True).eval()
    ours = MultiHeadAttention.from_torch(theirs).eval()
    ours.attend = fused_attention
    options, fast_path = CALLS[what]
    x = torch.randn(1, n, 512)
    before = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(fast_path)
    try:
        with torch.inference_mode():
            arms = (
                lambda: ours(x),
                lambda: theirs(x, x, x, **options),
            )
            torch.testing.assert_close(arms[0](), arms[1]()[0])
            (mine, _), (other, _) = in_turns(*arms)
            mib = [allocated_bytes(arm) / MIB for arm in arms]
    finally:
        torch.backends.mha.set_fastpath_enabled(before)
    return {"ratio": other / mine, "mib": mib[1], "our_mib": mib[0]}


def training(seed: int, what: str, n: int) -> dict[str, float]:
    """Eight blocks of 256 features, forward and backward."""
    blocks = nn.ModuleList(
        nn.TransformerEncoderLayer(
            256, 4, 1024, dropout=0.0, batch_first=True, norm_first=True
        )
        for _ in range(8)
    )
    x = torch.randn(4, n, 256)

    def plain() -> None:
        y = x
        for block in blocks:
            y = block(y)
        y.square().mean().backward()
        blocks.zero_grad(set_to_none=True)

    def checkpointed() -> None:
        y = x
        for block in blocks:
            y = checkpoint(block, y, use_reentrant=False)
        y.square().mean().backward()
        blocks.zero_grad(set_to_none=True)

    (without, _), (with_them, _) = in_turns(plain, checkpointed)
    return {
        "ratio": with_them / without,
        "mib": allocated_bytes(checkpointed) / MIB,
        "plain_mib": allocated_bytes(plain) / MIB,
    }


def precision(seed: int, what: str, n: int) -> dict[str, float]:
    """The same operation on inputs of half the bits."""
    if what == "matrix product":
        inputs, operation = torch.randn(2, n, n), torch.matmul
    else:
        inputs = torch.randn(3, 1, HEADS, n, D_HEAD)
        operation = F.scaled_dot_product_attention
    low = inputs.bfloat16()
    (full, _), (half, _) = in_turns(
        lambda: operation(*inputs), lambda: operation(*low)
    )
    return {"ratio": half / full}


def padding(seed: int, what: str, n: int) -> dict[str, float]:
    """Batches of 32, each as long as its longest text."""
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint(5, n + 1, (2048,), generator=generator)
    if what == "sorted":
        lengths = lengths.sort().values
    longest = lengths.view(-1, 32).amax(dim=-1)
    tokens = 32 * int(longest.sum())
    return {
        "padding": 1 - int(lengths.sum()) / tokens,
        "scores": 32 * int(longest.square().sum()) / 1e6,
    }


PARTS = {
    "faults": page_faults,
    "steps": one_step,
    "layer": layer,
    "training": training,
    "precision": precision,
    "padding": padding,
}

if __name__ == "__main__":
    compare = {"heads": compare_heads, "steps": compare_steps}[sys.argv[1]]
    print(json.dumps(compare(int(sys.argv[2]))))
