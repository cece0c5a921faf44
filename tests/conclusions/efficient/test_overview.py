"""Where the conclusions of the overview hold."""

import math
from statistics import median

import torch
from torch.testing import assert_close

from selfattn import attention
from selfattn.data import language
from selfattn.dot_product import attention_weights
from selfattn.labs.overview import EXACT, MECHANISMS

LENGTHS = (128, 512, 2048)


def test_the_error_of_hiding_is_hidden_weight_times_distance():
    for n in (2, 5, 40):
        q, k, v = torch.randn(3, n, 8, dtype=torch.float64)
        mask = torch.rand(n, n) < 0.5
        mask |= torch.eye(n, dtype=torch.bool)  # each sees one, and
        mask &= ~torch.eye(n, dtype=torch.bool).roll(1, 1)  # misses one
        weights = attention_weights(q, k)
        seen, hidden = (attention(q, k, v, mask=m) for m in (mask, ~mask))
        h = (weights * ~mask).sum(dim=-1, keepdim=True)
        assert (h > 0).all()
        error = attention(q, k, v, mask=mask) - attention(q, k, v)
        assert_close(error, h * (seen - hidden))


def error(runs, name, setting, **where):
    """The median over the seeds, in the setting's order."""
    order = ", causal" if setting.get("order") == "causal" else ""
    found = [run[name + order] for run in runs if where.items() <= run.items()]
    assert len(found) == 5
    return median(found)


def test_near_is_for_windows_and_far_for_reformer(setting, runs):
    window = f"window {setting['size']}"
    near, far = (
        [error(runs, x, setting, inputs=kind) for x in (window, "LSH 4")]
        for kind in ("near", "far")
    )
    assert near[0] < near[1]
    assert far[1] < far[0]


def test_what_the_chooser_leaves_on_far_and_on_near_inputs(setting, runs):
    """Of the sizes in the lab; what has no causal order has no error there."""
    patterns = {"window 64", "Longformer 64", "strided", "fixed", "Swin 64"}
    every = {*MECHANISMS} - {*EXACT}
    if setting["order"] == "causal":
        every -= {"Linformer 64"}

    def left(kind):
        off = {x: error(runs, x, setting, inputs=kind) for x in every}
        return {x for x in every if off[x] <= setting["bound"]}

    assert left("far") == {"LSH 4"}
    assert left("near") == patterns | {"LSH 4"}


def test_on_normal_inputs_an_average_is_nearer_than_a_window(setting, runs):
    window = error(runs, f"window {setting['size']}", setting)
    assert window > error(runs, "average", setting)


def test_linear_attention_is_about_as_far_off_as_an_average(setting, runs):
    ours, average = (
        error(runs, x, setting, inputs=setting["kind"])
        for x in ("linear", "average")
    )
    assert abs(ours - average) < 0.04


def test_performer_is_farther_off_than_an_average(setting, runs):
    estimate = error(runs, f"Performer {setting['size']}", setting)
    assert estimate > error(runs, "average", setting)


def test_in_longer_texts_a_fixed_size_is_farther_off(setting, runs):
    name = f"{setting['mechanism']} {setting['size']}"
    for order in ("any", "causal"):
        off = [
            error(runs, name, {"order": order}, n=n, inputs=setting["kind"])
            for n in LENGTHS
        ]
        assert off == sorted(set(off))


def test_an_average_learns_nearly_what_attention_does(setting, runs):
    chance = math.log(len(language.CHARACTERS))
    average, attended = (
        {
            run["seed"]: chance - run[f"loss, {setting['steps']}"]
            for run in runs
            if run["arm"] == arm
        }
        for arm in ("average", "softmax")
    )
    assert len(average) == len(attended) == 5
    assert median(average[i] / attended[i] for i in attended) >= 0.9
