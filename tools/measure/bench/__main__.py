"""Race the efficient mechanisms against PyTorch's fused kernel and others.

    python -m tools.measure.bench            every bench
    python -m tools.measure.bench window     one of them
    python -m tools.measure.bench --again    beside what this processor's say
    python -m tools.measure.bench memory     what new memory costs in them

The result goes to ``book/measurements/bench-<name>.json``; what lies there of
another processor is kept beside it, under that one's name. A second run on
the same one, ``bench-<name>-again.json``, tells what comes from the run alone.
Never a test: a clock does not repeat. What is asserted about cost is counted,
in the tests.

How it is measured: float32, batch 1, 8 heads of 64 features, one thread. All
candidates of a race run in one process and in turn, so that each meets the
same machine; a speed is the median of the ratios of all rounds, with the
quartiles beside it. Bytes are the most that PyTorch's allocator held at once
beyond the inputs, scratch memory of kernels and, after training, the
gradients among them; they repeat to the byte. Outputs of the last 256 tokens,
and in training what they send back to the inputs, are compared with the
definition in float64, wherever there is one. Neither weights nor what is made
before the race, masks above all, is among the bytes.

A run that was broken off goes on where it was; that of new memory begins
anew, and has seconds and rounds of its own.

Other libraries take part where they are installed: local-attention,
linear-attention-transformer, pytorch-fast-transformers, timm, transformers,
performer-pytorch, linformer and reformer-pytorch.
"""

import argparse
import functools
import importlib.metadata
import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import torch

from tools.measure.bench import (
    flash,
    linear,
    linformer,
    longformer,
    memory,
    multihead,
    performer,
    reformer,
    sparse,
    swin,
    window,
)
from tools.measure.bench.measuring import MANY, measure
from tools.measure.provenance import RESULTS, ROOT, as_json, provenance

STORE = ROOT / "_build" / "bench"
SECONDS = 10.0  # at least, of a race

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
    "CPU time and bytes on one thread: float32, batch 1, 8 heads of 64, "
    "no mask but the causal one in a race called causal, and what a "
    "mechanism hides itself. Speed and memory are ratios to the first of "
    "each race, measured in turn in one process; ms and speed are medians "
    "of all rounds, low and high the quartiles of speed. A tie has 1 "
    "between them. To_mine is the speed as a multiple of this package's "
    "in the same round, lower quartile, median and upper; ahead, in how "
    "many rounds it took less time. Faults are the pages that one more call "
    "touched for the first time. Shares are of the processor's time, "
    "as the profiler saw one more run. Load is the machine's in the "
    "minute before a race, of which other races are at most one; share, "
    "what part of a core's time the race was given."
)


@functools.cache
def here() -> dict[str, object]:
    """On what is run, as it was when the first race began.

    A commit that is made meanwhile is none that anything was run on.
    """
    changed = ["git", "status", "--porcelain", "--", "src", "tools"]
    told = subprocess.run(
        changed, cwd=ROOT, capture_output=True, text=True, check=True
    )
    allowed = getattr(os, "sched_getaffinity", None)
    return {
        **provenance(),
        "edited": bool(told.stdout),
        "processors": os.cpu_count(),
        "allowed": len(allowed(0)) if allowed else os.cpu_count(),
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


def frequency() -> int | None:
    """The clock of the slowest core in MHz, where the system tells it."""
    told = Path("/proc/cpuinfo")
    text = told.read_text("utf-8") if told.is_file() else ""
    found = re.findall(r"cpu MHz\s*:\s*([\d.]+)", text)
    return round(min(map(float, found))) if found else None


def raced(name: str, budget: float, many: int, more: str) -> Iterator[dict]:
    """The lines of a bench, each with load and clock; known ones at once."""
    where = here()
    made = f"{where['commit']}-{slug(str(where['processor']))}"
    key = f"{made}-{many}-{budget:g}"
    path = STORE / f"{name}{more}-{key}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    text = path.read_text("utf-8") if path.exists() else ""
    known = [json.loads(line) for line in text.splitlines()]
    for n, race in enumerate(BENCHES[name]()):
        if n < len(known):
            yield from known[n]
            continue
        machine = {"load": round(os.getloadavg()[0], 1), "MHz": frequency()}
        lines = [line | machine for line in measure(race, budget, many)]
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(lines) + "\n")
        yield from lines


def write(name: str, budget: float, many: int, again: bool) -> None:
    """Run the races of a bench, print each line, and write them down."""
    lines, more = [], "-again" * again
    for line in raced(name, budget, many, more):
        print(
            "{race:11} {n:6} {pass:9} {who:34} {ms:10.2f} ms  speed "
            "{speed:8.3f}  {low:.3f} to {high:.3f}  memory {memory:8.3f}  "
            "errors {error} {gradient_error}".format(**line),
            flush=True,
        )
        lines.append(line)
    options = "" if many == MANY else f" --rounds {many}"
    options += "" if budget == SECONDS else f" --seconds {budget:g}"
    options += " --again" * again
    load = max(line["load"] for line in lines)
    put_down(f"{name}{options}", ABOUT, lines, load, more)


def write_memory() -> None:
    """Run the long races with memory given back and kept; write it down."""
    here()  # before the first
    lines = []
    for name in BENCHES:
        for line in memory.both_ways(name):
            print(*line.values(), flush=True)
            lines.append(line)
    put_down("memory", memory.ABOUT, lines, round(os.getloadavg()[0], 1))


def put_down(
    told: str, about: str, lines: list[dict], load: float, more: str = ""
) -> None:
    """Write a ledger, of a bench and the options that it was told."""
    where = {**here(), "load": load, "libraries": versions()}
    result = {
        "about": about,
        "command": f"python -m tools.measure.bench {told}",
        "provenance": where,
        "runs": lines,
    }
    path = RESULTS / f"bench-{told.split()[0]}{more}.json"
    keep(path, str(where["processor"]))
    path.write_text(as_json(result), encoding="utf-8")


def keep(path: Path, processor: str) -> None:
    """Put the record aside if it is of another processor."""
    if path.exists():
        text = path.read_text("utf-8")
        before = json.loads(text)["provenance"]["processor"]
        if before != processor:
            aside = path.with_stem(f"{path.stem}-{slug(before)}")
            aside.write_text(text, encoding="utf-8")


def slug(processor: str) -> str:
    """A processor's name as a part of a file's."""
    return re.sub(r"\W+", "-", processor.lower()).strip("-")


def asked() -> argparse.Namespace:
    """Which benches, for how long each race, and whether beside the first."""
    parser = argparse.ArgumentParser(
        description="Race the efficient mechanisms; write the results down."
    )
    every = [*BENCHES, "memory"]
    parser.add_argument("names", nargs="*", help=", ".join(every))
    parser.add_argument(
        "--seconds",
        type=float,
        default=SECONDS,
        help="least time for a race",
    )
    parser.add_argument(
        "--rounds",
        type=int,
        default=MANY,
        help="least rounds of a race, unless fewer agree",
    )
    parser.add_argument(
        "--again",
        action="store_true",
        help="keep the first run of this processor, and write beside it",
    )
    options = parser.parse_args()
    if unknown := set(options.names) - set(every):
        parser.error(f"no such bench: {', '.join(sorted(unknown))}")
    if options.again and "memory" in options.names:
        parser.error("of memory there is one ledger, and no second beside it")
    options.names = options.names or (BENCHES if options.again else every)
    return options


def main() -> None:
    """Run them, one after another."""
    options = asked()
    torch.set_num_threads(1)
    for name in options.names:
        if name == "memory":
            write_memory()
        else:
            write(name, options.seconds, options.rounds, options.again)


if __name__ == "__main__":
    main()
