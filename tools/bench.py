"""Race the efficient mechanisms against PyTorch's fused kernel and others.

    python tools/bench.py            every bench
    python tools/bench.py window     one of them

The result goes to ``book/measurements/bench-<name>.json``. Never a test: a
clock does not repeat. What is asserted about cost is counted, in the tests.

How it is measured: float32, batch 1, 8 heads of 64 features, one thread. All
candidates of a race run in one process and in turn, so that each meets the
same machine; of each the least CPU time of all rounds stands. Bytes are the
most that PyTorch's allocator held at once beyond the inputs, scratch memory
of kernels and, after training, the gradients among them; they repeat to the
byte. Each output is compared with the definition in float64, in the same run.

Other libraries take part where they are installed: local-attention,
linear-attention-transformer and pytorch-fast-transformers.
"""

import argparse
import importlib.metadata
import json
import math
import os
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import torch
import torch.nn.functional as F
from experiments import RESULTS, provenance
from torch import Tensor, nn
from torch.profiler import ProfilerActivity, profile

from selfattn import (
    MultiHeadAttention,
    attention,
    flash_attention,
    fused_attention,
    linear_attention,
    sliding_window_attention,
)
from selfattn.masks import causal_mask, window_mask

HEADS, D = 8, 64
WINDOW = 256
ROWS = 256  # the last queries, whose outputs are checked
PEERS = (
    "local-attention",
    "linear-attention-transformer",
    "pytorch-fast-transformers",
)


class Race(NamedTuple):
    """Candidates on the same inputs; the first is the one to compare with."""

    name: str
    n: int
    training: bool
    candidates: dict[str, Callable[..., Tensor]]
    expected: dict[str, Callable[..., Tensor]]  # on the last queries
    layer: bool = False  # of (1, n, d_model) instead of q, k and v


def sdpa(q, k, v, causal=False):
    """PyTorch's own."""
    return F.scaled_dot_product_attention(q, k, v, is_causal=causal)


def naive(q, k, v):
    """What everybody writes first: the whole table of scores."""
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    return scores.softmax(dim=-1) @ v


def table(q, k, v, causal=False):
    """Linear attention's quadratic form, the queries being the last."""
    weights = (F.elu(q) + 1) @ (F.elu(k) + 1).mT
    if causal:
        weights = weights * causal_mask(q.shape[-2], k.shape[-2])
    return weights / weights.sum(dim=-1, keepdim=True) @ v


def windowed(q, k, v, window=WINDOW, causal=True):
    """Attention within a window, by its mask."""
    mask = window_mask(q.shape[-2], k.shape[-2], window)
    return attention(q, k, v, mask=mask, causal=causal)


def flash() -> Iterator[Race]:
    """Tiles against the fused kernel and against the whole table."""
    ours = {"naive": naive, "flash_attention": flash_attention}
    for n in (1024, 4096):
        for training in (False, True):
            fair = dict.fromkeys(["sdpa", *ours], attention)
            yield Race("full", n, training, {"sdpa": sdpa, **ours}, fair)
            past = partial(attention, causal=True)
            both = {
                "sdpa": partial(sdpa, causal=True),
                "flash_attention": partial(flash_attention, causal=True),
            }
            fair = dict.fromkeys(both, past)
            yield Race("causal", n, training, both, fair)


def window() -> Iterator[Race]:
    """A causal window of 256 against causal attention to everything."""
    past = partial(attention, causal=True)
    ours = partial(sliding_window_attention, window=WINDOW, causal=True)
    sides = partial(sliding_window_attention, window=WINDOW)
    for n, training in sizes(256, 512, 1024, 4096, 16384):
        race = {"sdpa": partial(sdpa, causal=True)}
        fair = {"sdpa": past, "sliding_window_attention": windowed}
        race["sliding_window_attention"] = ours
        try:
            from local_attention import LocalAttention

            options = {"causal": True, "autopad": True}
            peer = LocalAttention(WINDOW, exact_windowsize=True, **options)
            race["local-attention"] = lambda q, k, v, peer=peer: peer(q, k, v)
            # Its exact window has a key more.
            fair["local-attention"] = partial(windowed, window=WINDOW + 1)
        except ImportError:
            pass
        yield Race("causal", n, training, race, fair)
        if n == 16384:
            both = {"sdpa": sdpa, "sliding_window_attention": sides}
            fair = {
                "sdpa": attention,
                "sliding_window_attention": partial(windowed, causal=False),
            }
            yield Race("both sides", n, training, both, fair)


def linear() -> Iterator[Race]:
    """Linear attention, causal and not, against softmax attention."""
    for causal in (True, False):
        for n, training in sizes(256, 512, 1024, 4096, 16384):
            race = {
                "sdpa": partial(sdpa, causal=causal),
                "linear_attention": partial(linear_attention, causal=causal),
            }
            form = partial(table, causal=causal)
            fair = {
                "sdpa": partial(attention, causal=causal),
                "linear_attention": form,
            }
            race |= linear_peers(causal)
            if "pytorch-fast-transformers" in race:
                fair["pytorch-fast-transformers"] = form
            name = "causal" if causal else "full"
            yield Race(name, n, training, race, fair)


def linear_peers(causal: bool) -> dict[str, Callable[..., Tensor]]:
    """The other libraries' linear attention, where they are installed."""
    peers = {}
    try:
        from linear_attention_transformer import (
            linear_attention_transformer as lat,
        )

        # Its kernel is another one: softmax on both sides. Causally it is
        # exact only with buckets of one, at 26 times the memory: left out.
        if not causal:
            peers["linear-attention-transformer"] = lat.linear_attn
    except ImportError:
        pass
    try:
        from fast_transformers.attention import (
            CausalLinearAttention,
            LinearAttention,
        )
        from fast_transformers.masking import (
            FullMask,
            LengthMask,
            TriangularCausalMask,
        )

        layer = (CausalLinearAttention if causal else LinearAttention)(D)

        def fast(q, k, v):
            n = q.shape[-2]
            mask = TriangularCausalMask(n) if causal else FullMask(n)
            lengths = LengthMask(torch.tensor([n]))
            swapped = (x.transpose(1, 2) for x in (q, k, v))
            return layer(*swapped, mask, lengths, lengths).transpose(1, 2)

        peers["pytorch-fast-transformers"] = fast
    except ImportError:
        pass
    return peers


def multihead() -> Iterator[Race]:
    """Our layer against PyTorch's: its default call, and its best."""
    d_model, n = HEADS * D, 4096
    theirs = nn.MultiheadAttention(
        d_model, HEADS, bias=False, batch_first=True
    )
    ours = MultiHeadAttention.from_torch(theirs)
    ours.attend = fused_attention
    default = lambda x: theirs(x, x, x)[0]  # noqa: E731
    lean = lambda x: theirs(x, x, x, need_weights=False)[0]  # noqa: E731

    def slow_path(x):
        torch.backends.mha.set_fastpath_enabled(False)
        try:
            return lean(x)
        finally:
            torch.backends.mha.set_fastpath_enabled(True)

    race = {
        "nn.MultiheadAttention": default,
        "need_weights=False": lean,
        "need_weights=False, fast path off": slow_path,
        "MultiHeadAttention": ours,
    }
    exact = MultiHeadAttention.from_torch(theirs).double()

    def expected(last, x):
        return exact(last, x)

    for training in (False, True):
        for layer in (theirs, ours):
            layer.train(training)
        fair = dict.fromkeys(race, expected)
        yield Race("layer", n, training, race, fair, layer=True)


def sizes(*ns: int) -> Iterator[tuple[int, bool]]:
    """Each length forward, and the first and last in training, too."""
    for n in ns:
        yield n, False
    yield 1024, True
    yield ns[-1], True


def inputs(race: Race) -> list[Tensor]:
    """The same numbers for everyone, and the same in every run."""
    torch.manual_seed(0)
    shape = (1, race.n, HEADS * D) if race.layer else (1, HEADS, race.n, D)
    count = 1 if race.layer else 3
    return [
        torch.randn(shape, requires_grad=race.training) for _ in range(count)
    ]


def runner(f, given: list[Tensor], training: bool) -> Callable[[], object]:
    """One call of a candidate, with its way back in training."""
    if not training:

        def run():
            with torch.inference_mode():
                return f(*given)

        return run
    with torch.no_grad():
        grad = torch.ones_like(f(*given))
    return lambda: torch.autograd.grad(f(*given), given, grad)


def peak_bytes(run: Callable[[], object]) -> int:
    """The most bytes the allocator held at once, as the profiler saw it."""
    with profile(
        activities=[ProfilerActivity.CPU], profile_memory=True
    ) as seen:
        kept = run()
    events = [
        e
        for e in seen.profiler.kineto_results.events()
        if e.name() == "[memory]"
    ]
    live = peak = 0
    for event in sorted(events, key=lambda e: e.start_ns()):
        live += event.nbytes()
        peak = max(peak, live)
    del kept
    return peak


def error(race: Race, name: str, given: list[Tensor]) -> float | None:
    """The largest error of the last outputs, or None if they are others'."""
    if name not in race.expected:
        return None
    first, *rest = (x.detach().double() for x in given)
    last = first[..., -ROWS:, :]
    others = rest if rest else [first]
    with torch.inference_mode():
        want = race.expected[name](last, *others)
        got = race.candidates[name](*(x.detach() for x in given))
    return (got[..., -ROWS:, :] - want).abs().max().item()


def times(runs: dict[str, Callable[[], object]], budget: float, least: int):
    """The least CPU time of each, in turn, for so many seconds at least."""
    best = dict.fromkeys(runs, math.inf)
    start, rounds = time.time(), -1  # the first round warms up
    while rounds < least or (time.time() - start < budget and rounds < 100):
        for name, run in runs.items():
            begin = time.process_time()
            run()
            took = time.process_time() - begin
            if rounds >= 0:
                best[name] = min(best[name], took)
        rounds += 1
    return best, rounds


def measure(race: Race, budget: float, least: int) -> Iterator[dict]:
    """A line for each candidate."""
    given = inputs(race)
    runs = {
        name: runner(f, given, race.training)
        for name, f in race.candidates.items()
    }
    best, rounds = times(runs, budget, least)
    held = {name: peak_bytes(run) for name, run in runs.items()}
    first = next(iter(runs))
    for name in runs:
        off = error(race, name, given)
        yield {
            "race": race.name,
            "n": race.n,
            "pass": "training" if race.training else "forward",
            "who": name,
            "ms": round(1000 * best[name], 2),
            "speed": round(best[first] / best[name], 3),
            "bytes": held[name],
            "memory": round(held[name] / held[first], 3),
            "error": None if off is None else float(f"{off:.1e}"),
            "rounds": rounds,
        }


def versions() -> dict[str, str]:
    """The other libraries' versions, where they are installed."""
    found = {}
    for name in PEERS:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def processor() -> str:
    """The processor's own name, where the system tells it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return "unknown"
    told = dict(x.split(":", 1) for x in lines if ":" in x)
    told = {key.strip(): value.strip() for key, value in told.items()}
    keys = ("model name", "cpu family", "model", "cache size")
    return ", ".join(told[key] for key in keys if key in told)


BENCHES = {f.__name__: f for f in (flash, multihead, window, linear)}


def write(name: str, budget: float, least: int) -> None:
    """Run the races of a bench, print each line, and write them down."""
    lines = []
    for race in BENCHES[name]():
        for line in measure(race, budget, least):
            print(
                "{race:11} {n:6} {pass:9} {who:34} {ms:10.2f} ms  speed "
                "{speed:8.3f}  memory {memory:8.3f}  error {error}".format(
                    **line
                ),
                flush=True,
            )
            lines.append(line)
    result = {
        "about": "CPU time and bytes on one thread: float32, batch 1, 8 "
        "heads of 64, no mask but what the race's name says. Speed and "
        "memory are ratios to the first of each race, measured in turn in "
        "one process; ms is the least of all rounds.",
        "command": f"python tools/bench.py {name}",
        "provenance": {
            **provenance(),
            "processor": processor(),
            "processors": os.cpu_count(),
            "load": round(os.getloadavg()[0], 1),
            "libraries": versions(),
        },
    }
    text = json.dumps(result, indent=1)
    rows = ",\n".join("  " + json.dumps(line) for line in lines)
    text = text[:-2] + ',\n "runs": [\n' + rows + "\n ]\n}\n"
    (RESULTS / f"bench-{name}.json").write_text(text, encoding="utf-8")


def main() -> None:
    """Which benches, and for how long each race."""
    parser = argparse.ArgumentParser(
        description="Race the efficient mechanisms; write the results down."
    )
    parser.add_argument("names", nargs="*", help=", ".join(BENCHES))
    parser.add_argument(
        "--seconds", type=float, default=20, help="least time for a race"
    )
    parser.add_argument(
        "--rounds", type=int, default=3, help="least rounds of a race"
    )
    options = parser.parse_args()
    if unknown := set(options.names) - set(BENCHES):
        parser.error(f"no such bench: {', '.join(sorted(unknown))}")
    torch.set_num_threads(1)
    for name in options.names or BENCHES:
        write(name, options.seconds, options.rounds)


if __name__ == "__main__":
    main()
