"""Race the efficient mechanisms against PyTorch's fused kernel and others.

    python -m tools.measure.bench            every bench
    python -m tools.measure.bench window     one of them

The result goes to ``book/measurements/bench-<name>.json``. Never a test: a
clock does not repeat. What is asserted about cost is counted, in the tests.

How it is measured: float32, batch 1, 8 heads of 64 features, one thread. All
candidates of a race run in one process and in turn, so that each meets the
same machine; of each the least CPU time of all rounds stands. Bytes are the
most that PyTorch's allocator held at once beyond the inputs, scratch memory
of kernels and, after training, the gradients among them; they repeat to the
byte. Each output is compared with the definition in float64, in the same run.

Other libraries take part where they are installed: local-attention,
linear-attention-transformer, pytorch-fast-transformers, timm, transformers,
performer-pytorch, linformer and reformer-pytorch.
"""

import argparse
import importlib.metadata
import os

import torch

from tools.measure.bench import (
    flash,
    linear,
    linformer,
    longformer,
    multihead,
    performer,
    reformer,
    sparse,
    swin,
    window,
)
from tools.measure.bench.measuring import measure
from tools.measure.provenance import RESULTS, as_json, provenance

PEERS = (
    "local-attention",
    "linear-attention-transformer",
    "pytorch-fast-transformers",
    "timm",
    "transformers",
    "performer-pytorch",
    "linformer",
    "reformer-pytorch",
)
FIRST = (flash, multihead, window, linear, swin)
SECOND = (sparse, longformer, linformer, performer, reformer)
BENCHES = {m.__name__.rpartition(".")[2]: m.races for m in (*FIRST, *SECOND)}
ABOUT = (
    "CPU time and bytes on one thread: float32, batch 1, 8 "
    "heads of 64, no mask but what the race's name says. Speed and "
    "memory are ratios to the first of each race, measured in turn in "
    "one process; ms is the least of all rounds. Shares are of the "
    "processor's time, as the profiler saw one more run."
)


def versions() -> dict[str, str]:
    """The other libraries' versions, where they are installed."""
    found = {}
    for name in PEERS:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


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
    where = {
        **provenance(),
        "processors": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
        "libraries": versions(),
    }
    result = {
        "about": ABOUT,
        "command": f"python -m tools.measure.bench {name}",
        "provenance": where,
        "runs": lines,
    }
    text = as_json(result)
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
