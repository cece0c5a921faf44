"""The races: whoever takes part is checked, and what is committed is whole."""

from functools import partial

import pytest
import torch

from selfattn.cost import allocated_bytes
from selfattn.dot_product import attention
from selfattn.measurements import measured
from tools.measure.bench import measuring
from tools.measure.bench.__main__ import BENCHES
from tools.measure.bench.race import Race

# Another kernel, other random numbers, or other weights: no one can tell
# what these should have given.
UNCHECKED = {
    "linear-attention-transformer",
    "linformer",
    "performer-pytorch",
    "pytorch-fast-transformers",
    "reformer-pytorch",
    "transformers",
}

# Ours that are raced on heads, where no library has to be imported.
OURS = {
    "fixed_attention",
    "flash_attention",
    "linear_attention",
    "performer_attention",
    "sliding_window_attention",
    "strided_attention",
}


def race(training, **candidates):
    """A small race of attention against others."""
    runners = {"attention": attention, **candidates}
    fair = dict.fromkeys(runners, attention)
    return Race("small", 300, training, runners, fair)


@pytest.mark.parametrize("training", [False, True])
def test_every_candidate_gets_a_line_with_its_ratios(training):
    lines = list(measuring.measure(race(training, same=attention), 0, 1))
    assert [line["who"] for line in lines] == ["attention", "same"]
    assert lines[0]["speed"] == lines[0]["memory"] == 1.0
    assert lines[1]["memory"] == 1.0  # counted, so the same to the byte
    for line in lines:
        assert line["pass"] == ("training" if training else "forward")
        assert line["ms"] > 0
        assert line["error"] < 1e-5


def test_a_candidate_that_computes_something_else_is_seen():
    wrong = partial(attention, causal=True)
    found = race(False, wrong=wrong)
    given = measuring.inputs(found)
    assert measuring.error(found, "attention", given) < 1e-5
    assert measuring.error(found, "wrong", given) > 0.1


def test_what_nobody_can_check_is_not_called_right():
    unchecked = race(False)._replace(expected={})
    given = measuring.inputs(unchecked)
    assert measuring.error(unchecked, "attention", given) is None


def test_the_operation_that_takes_longest_is_named_first():
    x = torch.randn(499, 499)

    def run():
        return (x @ x @ x @ x)[:7, :7].exp()

    found = measuring.shares(run)
    assert next(iter(found)) == "aten::mm"
    assert found["aten::mm"] > 0.5 and sum(found.values()) < 1.01


@pytest.mark.parametrize("name", BENCHES)
def test_what_is_committed_is_whole_and_was_right(name):
    ledger = measured(f"bench-{name}")
    assert ledger["command"] == f"python -m tools.measure.bench {name}"
    where = ledger["provenance"]
    assert {"commit", "torch", "threads", "processor", "load"} <= set(where)
    assert where["threads"] == 1
    for line in ledger["runs"]:
        if line["error"] is None:
            assert line["who"] in UNCHECKED
        else:
            # Performer's are exponentials of numbers near 20, which float32
            # knows to seven digits: two of them are lost.
            assert line["error"] < (1e-4 if name == "performer" else 1e-5)


@pytest.mark.parametrize(
    "name", ["flash", "window", "linear", "sparse", "performer"]
)
def test_todays_code_holds_the_bytes_on_record(name):
    keys = ("race", "n", "pass", "who")
    runs = {
        tuple(run[key] for key in keys): run["bytes"]
        for run in measured(f"bench-{name}")["runs"]
    }
    short = [x for x in BENCHES[name]() if x.n == 1024 and not x.training]
    assert short
    for one in short:
        given = measuring.inputs(one)
        for who in OURS & set(one.candidates):
            call = measuring.runner(one.candidates[who], given, False)
            on_record = runs[one.name, 1024, "forward", who]
            assert abs(allocated_bytes(call) / on_record - 1) < 0.02
