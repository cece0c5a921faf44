"""Where the conclusions of the chapter on masks hold."""

import math

import torch
from torch.testing import assert_close
from torch.utils.flop_counter import FlopCounterMode

from selfattn import attention
from selfattn.masks import causal_mask, document_mask

FLOOR = math.log(2)
NEAR = 0.01


def draw(*shape):
    """Normal random numbers in double precision."""
    return torch.randn(*shape, dtype=torch.float64)


def prefixes(q, k, v):
    """Attention without a mask to each prefix, its last row."""
    ends = range(1, len(k) + 1)
    return torch.stack([attention(q[:t], k[:t], v[:t])[-1] for t in ends])


def masked(q, k, v):
    """One pass: the whole table of scores, and the future hidden."""
    scores = q @ k.T / q.shape[-1] ** 0.5
    keep = causal_mask(len(q), len(k))
    return scores.masked_fill(~keep, -torch.inf).softmax(dim=-1) @ v


def last_rows(q, k, v):
    """A step a token, its query alone."""
    ends = range(1, len(k) + 1)
    rows = [attention(q[t - 1 : t], k[:t], v[:t]) for t in ends]
    return torch.cat(rows)


def test_one_masked_pass_is_all_prefixes():
    for n in (1, 2, 7):
        qkv = draw(3, n, 5)
        assert_close(masked(*qkv), prefixes(*qkv))


def operations(way, qkv):
    """How many operations a way of computing takes."""
    with FlopCounterMode(display=False) as counter:
        way(*qkv)
    return counter.get_total_flops()


def test_the_masked_pass_is_in_the_middle(setting, runs):
    torch.manual_seed(0)
    n_k, d = setting["tokens"], setting["features"]
    qkv = torch.randn(3, n_k, d)
    least, middle, most = (
        operations(way, qkv) for way in (last_rows, masked, prefixes)
    )
    assert least < middle < most


def test_dividing_by_what_is_left_is_dividing_by_the_allowed():
    scores, keep = draw(11, 7), torch.rand(11, 7) < 0.5
    keep[:, 0] = True
    late = scores.softmax(dim=-1) * keep
    early = scores.masked_fill(~keep, -torch.inf).softmax(dim=-1)
    assert_close(late / late.sum(dim=-1, keepdim=True), early)


def test_a_zero_outvotes_what_is_negative():
    scores = -draw(11, 7).abs() - 1e-6
    scores[:, 3:5] = 0.0  # forbidden
    weights = scores.softmax(dim=-1)
    allowed = weights[:, [0, 1, 2, 5, 6]].amax(dim=-1)
    assert (weights[:, 3] > allowed).all()


def test_each_packed_text_is_as_if_alone():
    lengths = (3, 1, 5)
    names = torch.arange(3).repeat_interleave(torch.tensor(lengths))
    qkv = draw(3, sum(lengths), 4)
    mask = document_mask(names[None])[0, 0]
    alone = [
        attention(*part, causal=True) for part in qkv.split(lengths, dim=1)
    ]
    together = attention(*qkv, mask=mask, causal=True)
    assert_close(together, torch.cat(alone))


def hide(scores, fill):
    """Weights with the future filled in."""
    keep = causal_mask(*scores.shape)
    return scores.masked_fill(~keep, fill).softmax(dim=-1)


def late(scores):
    """Weights with the future wiped out after the softmax."""
    return scores.softmax(dim=-1) * causal_mask(*scores.shape)


def renormalised(scores):
    """The same, divided by what is left."""
    return late(scores) / late(scores).sum(dim=-1, keepdim=True)


def upside_down(scores):
    """Weights with the past hidden."""
    keep = ~causal_mask(*scores.shape)
    keep[-1, -1] = True
    return scores.masked_fill(~keep, -torch.inf).softmax(dim=-1)


LEAKS = (
    renormalised,
    late,
    lambda scores: hide(scores, 0.0),
    upside_down,
    lambda scores: scores.softmax(dim=-1),
)


def moved(weigh, loud, n, seed, t=6, d=4):
    """By how much the past moves when the future is another."""
    rng = torch.Generator().manual_seed(seed)
    qkv = torch.randn(3, n, d, generator=rng)

    def past(q, k, v):
        return (weigh(q @ k.T / d**0.5) @ v)[:t]

    before = past(*qkv)
    qkv[:, t:] = loud * torch.randn(3, n - t, d, generator=rng)
    return (past(*qkv) - before).abs().max().item()


def test_a_loud_future_finds_all_five(setting, runs):
    assert moved(lambda scores: hide(scores, -math.inf), **setting) == 0
    for weigh in LEAKS:
        gap = moved(weigh, **setting)
        assert math.isnan(gap) or gap > 1e-3


def read(run, steps):
    """The loss of a run after so many steps, on whole texts."""
    return run.get(f"read at {steps}", run["read"])


def test_divided_by_what_is_left_no_model_sees_the_coin(setting, runs):
    """And where the undivided mask lets one see it, so that this says much."""
    divided, undivided = (
        min(read(run, setting["steps"]) for run in runs if run["arm"] == arm)
        for arm in ("late, renormalised", "late")
    )
    assert divided > FLOOR - NEAR
    contrast = setting["rate"] < 0.03 and setting["steps"] > 60
    assert (undivided < FLOOR - NEAR) == contrast


def test_without_a_mask_the_coin_is_called(setting, runs):
    for arm in ("none", "reversed"):
        losses = [
            read(run, setting["steps"]) for run in runs if run["arm"] == arm
        ]
        assert max(losses) < FLOOR / 2


def test_what_was_read_is_missed_when_served(setting, runs):
    limit = FLOOR - setting["below_by"]
    below = [run for run in runs if run["read"] < limit]
    assert below
    assert all(run["served"] > run["read"] + 3 * NEAR for run in below)
