"""The races: whoever takes part is checked, and what is committed is whole."""

import json
import sys
from functools import partial

import pytest
import torch

from selfattn.cost import allocated_bytes
from selfattn.dot_product import attention
from selfattn.measurements import measured
from tools.measure.bench import __main__ as bench
from tools.measure.bench import measuring
from tools.measure.bench.__main__ import BENCHES
from tools.measure.bench.race import MINE, Race

# No attention at all, or buckets of their own: no one here has written what
# these should have given.
UNCHECKED = {
    ("linear", "products"),
    ("reformer", "reformer-pytorch"),
    ("reformer", "reformer-pytorch, 32 keys"),
    ("reformer", "transformers"),
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
    raced = race(training, same=attention)
    lines = list(measuring.measure(raced, 0, many=1))
    assert [line["who"] for line in lines] == ["attention", "same"]
    assert lines[0]["speed"] == lines[0]["memory"] == 1.0
    assert lines[1]["memory"] == 1.0  # counted, so the same to the byte
    for line in lines:
        assert line["pass"] == ("training" if training else "forward")
        assert line["ms"] > 0
        assert 0 < line["share"] < 1.1 * torch.get_num_threads()
        assert line["error"] < 1e-5
        assert (line["gradient_error"] is None) == (not training)


def test_a_candidate_that_computes_something_else_is_seen():
    wrong = partial(attention, causal=True)
    found = race(False, wrong=wrong)
    given = measuring.inputs(found)
    assert measuring.errors(found, "attention", given)["error"] < 1e-5
    assert measuring.errors(found, "wrong", given)["error"] > 0.1


class Deaf(torch.autograd.Function):
    """Keeps what it is given, and half of what comes back."""

    @staticmethod
    def forward(ctx, x):
        """The same."""
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        """Half."""
        return grad / 2


def test_a_wrong_gradient_is_seen_behind_a_right_output():
    def deaf(q, k, v):
        return attention(q, k, Deaf.apply(v))

    found = race(True, wrong=deaf)
    given = measuring.inputs(found)
    right = measuring.errors(found, "attention", given)
    wrong = measuring.errors(found, "wrong", given)
    assert right["gradient_error"] < 1e-5 and wrong["error"] < 1e-5
    assert wrong["gradient_error"] > 0.1


def test_what_nobody_can_check_is_not_called_right():
    unchecked = race(False)._replace(expected={})
    given = measuring.inputs(unchecked)
    assert measuring.errors(unchecked, "attention", given) == {}


def test_the_weights_of_a_layer_have_gradients_in_training():
    layer = torch.nn.Linear(7, 5)
    layer.unused = torch.nn.Parameter(torch.zeros(3))
    x = torch.randn(1, 11, 7, requires_grad=True)
    back = measuring.runner(layer, [x], training=True)()
    shapes = [None if g is None else g.shape for g in back]
    assert shapes[0] == x.shape and None in shapes
    assert {layer.weight.shape, layer.bias.shape} <= set(shapes)


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands until somebody moves it."""
    now = [0.0]
    monkeypatch.setattr(measuring.time, "process_time", lambda: now[0])
    monkeypatch.setattr(measuring.time, "time", lambda: now[0])
    return now


def test_few_rounds_are_enough_where_they_agree(clock):
    def takes(seconds):
        clock[0] += seconds

    runs = {"first": partial(takes, 1), "other": partial(takes, 2)}
    found = measuring.times(runs, budget=3)
    assert {len(x) for x in found.values()} == {measuring.FEW}
    assert measuring.speeds(found, "other") == [0.5] * measuring.FEW


def test_there_are_many_where_they_do_not(clock):
    calls = []

    def first():
        calls.append("first")
        clock[0] += 1

    def other():
        calls.append("other")
        clock[0] += 1 + len(calls) % 7

    found = measuring.times({"first": first, "other": other}, budget=3)
    assert {len(x) for x in found.values()} == {measuring.MANY}
    # The first calls warm up; then every second round goes the other way.
    order = ["first", "other", "other", "first"]
    assert calls[2:10] == order * 2


def test_the_middle_half_of_the_rounds_decides_what_is_a_tie():
    low, high = measuring.quartiles([0.8, 0.9, 1.0, 1.1, 1.2])
    assert (low, high) == pytest.approx((0.9, 1.1))
    assert measuring.quartiles([1.5]) == (1.5, 1.5)


def test_who_of_two_is_ahead_is_told_by_the_two_alone():
    """By quartiles of ratios to a third they tied: its noise was in both."""
    noise = [1.0, 1.4, 0.8, 1.2, 0.9]
    took = {
        "sdpa": noise,
        "linear_attention": [0.5, 0.52, 0.48, 0.5, 0.51],
        "peer": [0.4, 0.42, 0.39, 0.41, 0.52],
    }
    small = race(False)._replace(candidates=took)
    assert small.mine == "linear_attention"
    low, high = measuring.quartiles(measuring.speeds(took, "peer"))
    ours = measuring.quartiles(measuring.speeds(took, small.mine))
    assert low < ours[1] and ours[0] < high
    told = measuring.beside_mine(took, "peer", small.mine)
    assert told["ahead"] == 4 and told["to_mine"][0] > 1.2
    itself = measuring.beside_mine(took, small.mine, small.mine)
    assert itself == {"to_mine": [1.0, 1.0, 1.0], "ahead": 0}
    assert measuring.beside_mine(took, "peer", None) == {}


def test_a_commit_that_is_made_meanwhile_is_not_written_down(monkeypatch):
    """A ledger named one that came after all of its races."""
    bench.here.cache_clear()
    first = bench.here()
    monkeypatch.setattr(bench, "provenance", lambda: {"commit": "later"})
    assert bench.here()["commit"] == first["commit"] != "later"
    assert isinstance(first["edited"], bool)


def test_a_record_of_another_processor_is_put_aside(tmp_path):
    path = tmp_path / "bench-some.json"
    text = '{"provenance": {"processor": "Maker, 6, 207, 3 KB"}, "runs": []}'
    path.write_text(text)
    bench.keep(path, "Maker, 6, 207, 3 KB")
    assert [p.name for p in tmp_path.iterdir()] == ["bench-some.json"]
    bench.keep(path, "Maker, 25, 17, 1 KB")
    aside = tmp_path / "bench-some-maker-6-207-3-kb.json"
    assert aside.read_text() == text


def test_a_second_run_is_written_beside_the_first(tmp_path, monkeypatch):
    line = dict.fromkeys(("n", "ms", "speed", "low", "high", "memory"), 1)
    words = ("race", "pass", "who", "error", "gradient_error")
    line |= dict.fromkeys(words, "-")
    races = [race(False)._replace(name="one")]
    for name in ("STORE", "RESULTS"):
        monkeypatch.setattr(bench, name, tmp_path)
    monkeypatch.setitem(bench.BENCHES, "small", lambda: races)
    for times, again in enumerate((False, True), start=1):
        made = [line | {"ms": times}]
        monkeypatch.setattr(bench, "measure", lambda *_, made=made: made)
        bench.write("small", bench.SECONDS, bench.MANY, again)
    first, second = (
        json.loads((tmp_path / f"bench-small{more}.json").read_text("utf-8"))
        for more in ("", "-again")
    )
    assert [x["runs"][0]["ms"] for x in (first, second)] == [1, 2]
    assert second["command"] == f"{first['command']} --again"


def test_a_second_run_leaves_the_ledger_of_new_memory_alone(
    monkeypatch, capsys
):
    """There is one: `--again` alone wrote over it, and was not to."""
    called = []
    monkeypatch.setattr(bench, "write", lambda name, *_: called.append(name))
    monkeypatch.setattr(bench, "write_memory", lambda: called.append("memory"))
    monkeypatch.setattr(sys, "argv", ["bench", "--again"])
    bench.main()
    assert called == [*BENCHES]
    monkeypatch.setattr(sys, "argv", ["bench", "memory", "--again"])
    with pytest.raises(SystemExit):
        bench.main()
    assert "of memory there is one ledger" in capsys.readouterr().err
    assert called == [*BENCHES]


def test_a_run_that_was_broken_off_goes_on_where_it_was(tmp_path, monkeypatch):
    made = []

    def counted(race, budget, many):
        made.append(race.name)
        if len(made) == 2:
            raise KeyboardInterrupt
        yield {"race": race.name}

    races = [race(False)._replace(name=name) for name in ("one", "two")]
    monkeypatch.setattr(bench, "STORE", tmp_path)
    monkeypatch.setattr(bench, "measure", counted)
    monkeypatch.setitem(bench.BENCHES, "small", lambda: races)
    with pytest.raises(KeyboardInterrupt):
        list(bench.raced("small", 0, 1, ""))
    lines = list(bench.raced("small", 0, 1, ""))
    assert [line["race"] for line in lines] == ["one", "two"]
    assert made == ["one", "two", "two"]
    assert all("load" in line for line in lines)


def test_the_operation_that_takes_longest_is_named_first():
    x = torch.randn(499, 499)

    def run():
        return (x @ x @ x @ x)[:7, :7].exp()

    found = measuring.shares(run)
    assert next(iter(found)) == "aten::mm"
    assert found["aten::mm"] > 0.5 and sum(found.values()) < 1.01


@pytest.mark.parametrize("more", ["", "-again"])
@pytest.mark.parametrize("name", BENCHES)
def test_what_is_committed_is_whole_and_was_right(name, more):
    ledger = measured(f"bench-{name}{more}")
    assert ledger["command"] == f"python -m tools.measure.bench {name}"
    where = ledger["provenance"]
    assert {"commit", "torch", "threads", "processor", "load"} <= set(where)
    assert where["threads"] == 1 and where["edited"] is False
    assert 1 <= where["allowed"] <= where["processors"]
    for line in ledger["runs"]:
        low, high, speed = line["low"], line["high"], line["speed"]
        assert low <= speed <= high
        first = low == high == 1
        # A quartile of .9996 is written down as 1, and is no tie.
        if first or 1 not in (low, high):
            assert line["tie"] == (low <= 1 <= high and not first)
        least, middle, most = line["to_mine"]
        assert least <= middle <= most
        assert 0 <= line["ahead"] <= line["rounds"]
        if line["who"] in MINE:
            assert line["to_mine"] == [1, 1, 1] and line["ahead"] == 0
        rounds, apart = line["rounds"], high - low
        # Three digits are written down, which may hide .002 of a spread.
        agree = apart <= measuring.AGREE * speed + 0.002
        assert rounds >= measuring.MANY or (agree and rounds >= measuring.FEW)
        if line["error"] is None:
            assert (name, line["who"]) in UNCHECKED
            assert line["gradient_error"] is None
        else:
            # Performer's are exponentials of numbers near 20, which float32
            # knows to seven digits: two of them are lost.
            limit = 1e-4 if name == "performer" else 1e-5
            assert line["error"] < limit
            if line["pass"] == "training":
                assert line["gradient_error"] < limit


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
