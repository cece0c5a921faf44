"""New memory in the races: who touches it is seen, and kept, nobody does."""

import os
import subprocess
import sys
from functools import partial

from selfattn.dot_product import attention
from selfattn.measurements import measured
from tools.measure.bench import memory
from tools.measure.bench.__main__ import BENCHES
from tools.measure.bench.race import MINE, Race
from tools.measure.experiments.cost import KEPT

PAGE = 4096  # bytes


def touched(keeping):
    """Faults of a call that makes two tensors of 64 MiB, in a new process:
    the fewest of some, for what is kept must be there before, and may lie in
    pieces at first.
    """
    code = (
        "import torch\n"
        "from tools.measure.bench.memory import faults\n"
        "make = lambda: torch.ones(1 << 24) + 1\n"
        "print(min(faults(make) for _ in range(12)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | keeping,
        capture_output=True,
        text=True,
        check=True,
    )
    return int(done.stdout)


def test_given_back_memory_is_touched_anew_and_kept_memory_is_not():
    pages = 2 * 4 * (1 << 24) // PAGE  # of two tensors
    if sys.platform == "linux":  # elsewhere the C library has other habits
        assert touched({}) >= 0.9 * pages / 512  # at least, in large pages
        assert touched(KEPT) <= 8


def small_races():
    """Two short ones and two long ones, with attention to all."""
    for n in (5, 11):
        for training in (False, True):
            runners = {"sdpa": attention, "flash_attention": attention}
            runners["other"] = partial(attention, causal=True)
            yield Race("full", n, training, runners, {})


def test_only_the_longest_are_run_and_nobody_attends_to_all(monkeypatch):
    monkeypatch.setattr(memory, "SECONDS", 0.0)
    monkeypatch.setattr(memory, "ROUNDS", 3)
    longest = memory.long_races(small_races())
    assert [(race.n, race.training) for race in longest] == [
        (11, False),
        (11, True),
    ]
    found = memory.of_one_process(longest[1])
    assert found["pass"] == "training" and found["mine"] == "flash_attention"
    assert set(found["took"]) == {"flash_attention", "other"}
    assert set(found["faults"]) == set(found["took"])
    assert {len(seconds) for seconds in found["took"].values()} == {3}


def process(ours, other, faults):
    """What one process says of a race, by hand."""
    return {
        "race": "full",
        "n": 11,
        "pass": "forward",
        "mine": "flash_attention",
        "took": {"flash_attention": ours, "other": other},
        "faults": {"flash_attention": 0, "other": faults},
    }


def test_rounds_of_both_processes_are_counted_together(monkeypatch):
    def in_a_process(name, keeping):
        if keeping:
            return [process([1.0, 1.0, 2.0], [1.0, 2.0, 1.0], 0)]
        return [process([1.0, 1.0, 1.0], [4.0, 8.0, 2.0], 7)]

    monkeypatch.setattr(memory, "in_a_process", in_a_process)
    lines = {(x["memory"], x["who"]): x for x in memory.both_ways("some")}
    assert len(lines) == 4
    back, kept = (lines[way, "other"] for way in ("given back", "kept"))
    assert back["bench"] == "some" and back["rounds"] == kept["rounds"] == 6
    assert back["ms"] == 4000.0 and back["faults"] == 7
    assert back["to_mine"] == [0.156, 0.25, 0.438]  # of 1/8, 1/4 and 1/2
    assert kept["to_mine"][1] == 1.0 and kept["faults"] == 0
    assert lines["kept", "flash_attention"]["to_mine"] == [1, 1, 1]


def test_what_is_committed_has_both_ways_of_every_bench():
    ledger = measured("bench-memory")
    assert ledger["command"] == "python -m tools.measure.bench memory"
    assert ledger["provenance"]["edited"] is False
    ways = {}
    for line in ledger["runs"]:
        least, middle, most = line["to_mine"]
        assert least <= middle <= most and line["rounds"] >= 4
        if line["who"] in MINE:
            assert line["to_mine"] == [1, 1, 1]
        where = tuple(line[key] for key in ("bench", "race", "pass", "who"))
        ways.setdefault(where, []).append(line["memory"])
    assert {where[0] for where in ways} == set(BENCHES)
    assert all(
        sorted(both) == ["given back", "kept"] for both in ways.values()
    )
