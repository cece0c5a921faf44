"""What new memory costs those who race: the same races, with memory kept.

The C library hands large memory back to the system after use, and asks for it
anew. The first touch of each new page is a fault, which takes time; a library
that is told to keep its memory soon has none. So each race is run in processes
of both ways, in turn: given back, kept, kept, given back.

    python -m tools.measure.bench memory

Only the longest races of each mechanism, and without attention to everything.
"""

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from statistics import median

import torch

from tools.measure.bench.measuring import (
    beside_mine,
    faults,
    inputs,
    runner,
    times,
)
from tools.measure.bench.race import Race
from tools.measure.experiments.cost import KEPT
from tools.measure.provenance import ROOT

WAYS = ("given back", "kept", "kept", "given back")
TO_ALL = ("sdpa", "sdpa layer", "all tokens", "naive", "nn.MultiheadAttention")
SECONDS = 5.0  # of a race in a process, at least
ROUNDS = 10
ABOUT = (
    "CPU time on one thread, with memory that the C library hands back and "
    "asks for anew, as it does by itself, and with memory that it keeps: the "
    "longest races of each mechanism, without attention to everything. Each "
    "way had two processes, whose rounds are together. Ms is the median; "
    "to_mine the speed as a multiple of this package's in the same round, "
    "lower quartile, median and upper; faults, how many pages one more call "
    "touched for the first time, the fewer of the two processes."
)


def both_ways(name: str) -> Iterator[dict]:
    """What came out for one bench, a line a candidate and way."""
    parts: dict[tuple[str, ...], list[dict]] = {}
    for way in WAYS:
        for line in in_a_process(name, KEPT if way == "kept" else {}):
            race = name, line["race"], line["n"], line["pass"], way
            parts.setdefault(race, []).append(line)
    for race, processes in parts.items():
        keys = ("bench", "race", "n", "pass", "memory")
        for line in together(processes):
            yield dict(zip(keys, race, strict=True)) | line


def in_a_process(name: str, keeping: dict[str, str]) -> list[dict]:
    """The long races of a bench, where the C library is told this."""
    done = subprocess.run(
        [sys.executable, "-m", "tools.measure.bench.memory", name],
        cwd=ROOT,
        env=os.environ | keeping,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


def together(processes: list[dict]) -> Iterator[dict]:
    """The lines of one race, of the rounds of all its processes."""
    mine = processes[0]["mine"]
    took = {
        who: [t for one in processes for t in one["took"][who]]
        for who in processes[0]["took"]
    }
    for who, seconds in took.items():
        yield {
            "who": who,
            "ms": round(1000 * median(seconds), 2),
            "to_mine": beside_mine(took, who, mine)["to_mine"],
            "faults": min(one["faults"][who] for one in processes),
            "rounds": len(seconds),
        }


def long_races(races: Iterator[Race]) -> list[Race]:
    """The longest ones."""
    known = list(races)
    longest = max(race.n for race in known)
    return [race for race in known if race.n == longest]


def of_one_process(race: Race) -> dict:
    """Seconds of each round of everyone, and the faults of one more call."""
    given = inputs(race)
    runs = {
        who: runner(call, given, race.training)
        for who, call in race.candidates.items()
        if who not in TO_ALL
    }
    return {
        "race": race.name,
        "n": race.n,
        "pass": "training" if race.training else "forward",
        "mine": race.mine,
        "took": times(runs, SECONDS, ROUNDS),
        "faults": {who: faults(run) for who, run in runs.items()},
    }


if __name__ == "__main__":
    torch.set_num_threads(1)
    bench = importlib.import_module(f"tools.measure.bench.{sys.argv[1]}")
    print(json.dumps([of_one_process(x) for x in long_races(bench.races())]))
