"""Where the conclusions of the chapter on models hold."""

from functools import cache

import torch
from torch.testing import assert_close

from selfattn import attention
from selfattn.blocks import EncoderBlock
from selfattn.measurements import measured
from selfattn.models import Decoder, Embedding
from selfattn.positions import LearnedPositions

ORDERED = 5 / 6  # of the texts; counting words is right in about .8


@cache
def every_run():
    """The committed runs, read once."""
    return measured("models")["runs"]


def others(arm, setting):
    """The runs of another arm of the language in the same setting."""
    wanted = {k: setting[k] for k in ("rate", "seed") if k in setting}
    return [
        run
        for run in every_run()
        if run["arm"] == arm
        and run["task"] == "language"
        and all(run.get(k, v) == v for k, v in wanted.items())
    ]


def at(setting, name, runs):
    """A number of some runs at the setting's budget."""
    return [run[f"{name}, {setting['steps']}"] for run in runs]


def test_a_transformer_gets_below_the_bigram(setting, runs):
    (loss,) = at(setting, "loss", runs)
    (table,) = at(setting, "loss", others("bigram", setting))
    assert loss < table


def test_an_lstm_of_equal_size_is_ahead(setting, runs):
    (ahead,) = at(setting, "loss", runs)
    (behind,) = at(setting, "loss", others("Transformer", setting))
    assert ahead < behind


def test_a_slip_costs_a_better_model_more(setting, runs):
    (run,) = runs
    early, late = setting["better"].split(" to ")
    assert run[f"loss, {late}"] < run[f"loss, {early}"]
    assert run[f"slip, {late}"] > run[f"slip, {early}"]


def test_who_has_met_slips_loses_less_by_one(setting, runs):
    (met,) = at(setting, "slip", runs)
    same = setting | {"rate": 0.003}
    (never,) = at(setting, "slip", others("Transformer", same))
    assert met < never


def test_without_the_order_no_run_is_right_more_often(setting, runs):
    (right,) = at(setting, "right", runs)
    average = [
        run
        for run in every_run()
        if run["arm"] == "average"
        and (run["rate"], run["seed"]) == (setting["rate"], setting["seed"])
    ]
    assert max(right, *at(setting, "right", average)) <= ORDERED


def test_places_of_patches_help(setting, runs):
    (placed,) = at(setting, "right", runs)
    without, table_alone = (
        at(setting, "right", [run])[0]
        for arm in ("unordered", "scattered")
        for run in every_run()
        if (run["task"], run["arm"]) == ("digits", arm)
        and (run["rate"], run["seed"]) == (setting["rate"], setting["seed"])
    )
    assert placed > max(without, table_alone)


@torch.no_grad()
def test_cached_steps_give_what_the_full_pass_gives():
    """Under a causal mask keys and values of the past do not change."""
    embed = Embedding(11, 12, positions=LearnedPositions(9, 12))
    blocks = [EncoderBlock(12, 3, 48, pre=True) for _ in range(2)]
    model, text = Decoder(embed, blocks).double(), torch.randint(11, (2, 9))
    full, cache_ = model(text), None
    for t in range(9):
        logits, cache_ = model.step(text[:, t : t + 1], cache_)
        assert_close(logits, full[:, t])


def test_a_mask_of_edges_is_a_loop_over_neighbours():
    near = torch.rand(6, 6) < 0.4
    near |= near.T | torch.eye(6, dtype=torch.bool)
    q, k, v = torch.randn(3, 6, 4).double()
    rows = [attention(q[i : i + 1], k[near[i]], v[near[i]]) for i in range(6)]
    assert_close(attention(q, k, v, mask=near), torch.cat(rows))
