"""Other seeds have to agree with the committed ones: on tiny experiments."""

import random
from types import SimpleNamespace

import pytest

from selfattn.measurements import measured
from tools.measure import experiments, retrain

WITHOUT = {"looking_inside"}  # no two of its settings lie apart in one thing


def tiny(**effect):
    """An experiment in one step: a level by arm, and some luck by seed."""

    def run(seed, *, arm, rate):
        luck = random.Random(seed).random() / 10
        return {"right": effect[arm] + luck, "loss": rate}

    arms = [{"arm": arm, "rate": 0.1} for arm in effect]
    return SimpleNamespace(
        SEEDS=range(5),
        SETTINGS=arms,
        SMALLEST=arms[0],
        TOLERANCE=0.01,
        run=run,
    )


def committed(experiment):
    """What the experiments command would write of it."""
    return [
        {"seed": seed, **setting, **experiment.run(seed, **setting)}
        for setting in experiment.SETTINGS
        for seed in experiment.SEEDS
    ]


def test_arms_that_every_seed_puts_in_one_order_are_a_direction():
    some = tiny(low=0.2, high=0.8, near=0.25)
    found = retrain.directions(some, committed(some))
    assert [(d.name, d.low["arm"], d.high["arm"]) for d in found] == [
        ("right", "low", "high"),
        ("right", "near", "high"),
    ]


def test_settings_that_differ_in_two_things_are_none():
    some = tiny(low=0.2, high=0.8)
    some.SETTINGS = [some.SETTINGS[0], {"arm": "high", "rate": 0.2}]
    assert retrain.directions(some, committed(some)) == []


def test_what_was_committed_comes_out_again(capsys):
    some = tiny(low=0.2, high=0.8)
    runs = committed(some)
    assert retrain.retrained(some, runs, random.Random(0)) == []
    said = capsys.readouterr().out
    assert "right is lower in {'arm': 'low'" in said
    assert "within" in said or "outside" in said


def test_arms_exchanged_are_red():
    some, turned = tiny(low=0.2, high=0.8), tiny(low=0.8, high=0.2)
    turned.SMALLEST = {}
    (pair,) = retrain.directions(some, committed(some))
    (found,) = retrain.against(turned, pair, 77)
    assert "not below" in found


def test_another_number_of_a_committed_seed_is_red():
    some = tiny(low=0.2, high=0.8)
    runs = committed(some)
    assert retrain.again(some, runs, 3) == []
    runs[3]["right"] += 0.02
    (found,) = retrain.again(some, runs, 3)
    assert found.startswith("right of seed 3")


@pytest.mark.parametrize("chapter", experiments.chapters())
def test_every_chapter_has_a_direction(chapter):
    """And each has a seed beyond the one that the tests train."""
    experiment = experiments.load(chapter)
    found = retrain.directions(experiment, measured(chapter)["runs"])
    assert bool(found) == (chapter not in WITHOUT)
    assert len(experiment.SEEDS) > 1
