"""Designs that many models share, and that were called ill.

Each was met in code that somebody wrote without knowing the doctor. Beside
each stands the same with a mistake, which is to be seen still.
"""

import functools
import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from selfattn.doctor import examine

here = functools.partial(examine, time_limit=None)


class PartlyTurned(nn.Module):
    """A share of a head's features, in halves, as GPT-NeoX turns them."""

    def __init__(self, width=16, share=0.25, sign=1, rest=1):
        super().__init__()
        self.n = int(width * share)
        self.sign, self.rest = sign, rest
        steps = torch.arange(0, self.n, 2, dtype=torch.float64)
        self.register_buffer("rates", 10_000 ** (-steps / self.n))

    def forward(self, x, offset=0):
        where = torch.arange(offset, offset + x.shape[-2]).double()
        angle = torch.outer(where, self.rates).repeat(1, 2)
        turned, kept = x[..., : self.n], x[..., self.n :]
        a, b = turned.chunk(2, dim=-1)
        other = torch.cat((-self.sign * b, a), dim=-1)
        made = turned * angle.cos().to(x) + other * angle.sin().to(x)
        return torch.cat((made, self.rest * kept), dim=-1)


def every_two_of_four(x, offset=0, turned=4, scale=1.0):
    """The first four features, neighbours, of however many."""
    rates = 10_000 ** (-torch.arange(0, turned, 2).double() / turned)
    where = torch.arange(x.shape[-2]).double() + offset
    angle = torch.outer(where, rates) * scale
    angle = angle.repeat_interleave(2, dim=-1)
    cos, sin = angle.cos().to(x), angle.sin().to(x)
    part, rest = x[..., :turned], x[..., turned:]
    other = torch.stack((-part[..., 1::2], part[..., ::2]), -1).flatten(-2)
    return torch.cat((part * cos + other * sin, rest), dim=-1)


TOLD_OF_PARTS = [
    {},
    {"pairs": "halves", "layout": "BHND"},
    {"pairs": "halves", "layout": "BHND", "width": 16, "part": 0.25},
    {"pairs": "halves", "part": 0.25},
]


@pytest.mark.parametrize("told", TOLD_OF_PARTS)
def test_who_turns_a_part_of_the_features_is_read_so(told):
    """It was wrong on 10 of 12 probes: all features had to turn."""
    report = here(PartlyTurned(), kind="rope", **told)
    assert report.passed, report
    report = here(PartlyTurned(sign=-1), kind="rope", **told)
    assert report.exit_code == 1, report
    assert report.mistake.name == "one sign is wrong"
    if "part" in told:  # else it is looked at where nothing is left
        report = here(PartlyTurned(rest=2), kind="rope", **told)
        assert report.exit_code == 1, report


@pytest.mark.parametrize("told", [{}, {"pairs": "neighbours"}])
def test_a_part_of_a_fixed_number_of_features(told):
    assert here(every_two_of_four, kind="rope", **told).passed
    slow = functools.partial(every_two_of_four, scale=0.5)
    assert here(slow, kind="rope", **told).exit_code == 1


def test_half_of_the_features_may_be_meant_and_may_be_a_slip():
    half = PartlyTurned(share=0.5)
    told = {"pairs": "halves", "layout": "BHND", "width": 16}
    report = here(half, kind="rope", **told)
    assert "part=0.5" in str(report) and report.exit_code != 0
    assert here(half, kind="rope", **told, part=0.5).passed
    quarter = here(half, kind="rope", **told, part=0.25)
    assert quarter.exit_code == 1


PHASORS = torch.polar(
    torch.ones(64, 4, dtype=torch.float64),
    torch.outer(
        torch.arange(64).double(), 10_000 ** (-torch.arange(4).double() / 4)
    ),
)


def by_phasors(x, start_pos=0):
    """Neighbours are one complex number, and must lie side by side."""
    numbers = torch.view_as_complex(x.double().reshape(*x.shape[:-1], -1, 2))
    turned = numbers * PHASORS[start_pos : start_pos + x.shape[-2]]
    return torch.view_as_real(turned).flatten(-2).type_as(x)


@pytest.mark.parametrize("told", [{}, {"pairs": "neighbours", "width": 8}])
def test_who_refuses_features_that_lie_apart_is_not_wrong(told):
    """Strided float64 raises there, which was called a mistake."""
    report = here(by_phasors, kind="rope", **told)
    assert report.passed, report
    assert "features that do not lie side by side" in report.not_asked


class CutOut(nn.Module):
    """A square of ones below the diagonal, of which rows are cut out."""

    def __init__(self, longest=64, late=0):
        super().__init__()
        ones = torch.ones(longest, longest, dtype=torch.bool)
        self.register_buffer("square", ones.tril())
        self.late = late

    def forward(self, n_q, n_k):
        first = n_k - n_q - self.late
        return self.square[first : n_k - self.late, :n_k]


def zeros_for_the_past(n_q, n_k, diagonal=1):
    square = torch.full((n_q, n_q), -torch.inf).triu(diagonal)
    return torch.hstack([torch.zeros(n_q, n_k - n_q), square])


@pytest.mark.parametrize("told", [{}, {"alignment": "last", "arguments": 2}])
def test_a_mask_need_not_have_rows_before_every_key(told):
    """Seven queries of three keys were asked for, and are not to be had."""
    assert here(CutOut(), kind="causal-mask", **told).passed
    assert here(zeros_for_the_past, kind="causal-mask", **told).passed
    late = here(CutOut(late=1), kind="causal-mask", **told)
    assert late.exit_code == 1
    ahead = functools.partial(zeros_for_the_past, diagonal=2)
    assert here(ahead, kind="causal-mask", **told).exit_code == 1


class Bare(nn.Module):
    """Square matrices that are parameters, as F.linear wants them."""

    def __init__(self, d=12, n_heads=3, back=False):
        super().__init__()
        self.n_heads, self.back = n_heads, back
        for name in ("Wq", "Wk", "Wv", "Wo"):
            setattr(self, name, nn.Parameter(torch.randn(d, d) / d**0.5))

    def forward(self, x):
        q, k, v = (
            F.linear(x, W).unflatten(-1, (self.n_heads, -1)).transpose(1, 2)
            for W in (self.Wq, self.Wk, self.Wv)
        )
        weights = (q @ k.mT / math.sqrt(q.shape[-1])).softmax(dim=-1)
        merged = (weights @ v).transpose(1, 2).flatten(-2)
        return merged @ (self.Wo if self.back else self.Wo.mT)


@pytest.mark.parametrize("told", [{}, {"layout": "BND", "n_heads": 3}])
def test_square_matrices_may_lie_either_way(told):
    """All were called transposed, and the output's as well."""
    report = here(Bare(), kind="self-attention", **told)
    assert report.passed, report
    report = here(Bare(back=True), kind="self-attention", **told)
    assert report.exit_code == 1
    matrices = {"matrices": "in, out"}
    report = here(Bare(), kind="self-attention", **told, **matrices)
    assert report.exit_code == 1


class Unnamed(nn.Module):
    """Three square matrices, of which no name says what they are for."""

    def __init__(self, d=12):
        super().__init__()
        made = (nn.Parameter(torch.randn(d, d) / d**0.5) for _ in range(3))
        self.three = nn.ParameterList(made)

    def forward(self, x):
        q, k, v = (x @ W for W in self.three)
        return (q @ k.mT / math.sqrt(q.shape[-1])).softmax(dim=-1) @ v


def test_square_matrices_without_a_name_tell_how_wide_tokens_are():
    report = here(Unnamed(), kind="self-attention", layout="BND", n_heads=1)
    assert report.passed, report


def valid_lengths(scores, valid_lens):
    """Lengths must be handed over, if only as None."""
    if valid_lens is None:
        return scores.softmax(dim=-1)
    real = torch.arange(scores.shape[-1]) < valid_lens[:, None, None]
    return scores.masked_fill(~real, -torch.inf).softmax(dim=-1)


def test_lengths_that_may_be_none_are_handed_over():
    """It was called without, and raised on 15 of 15 probes."""
    assert here(valid_lengths, kind="softmax").passed
    assert here(valid_lengths, kind="softmax", mask="lengths").passed


def test_what_is_made_where_none_is_handed_over_is_asked():
    """Were all lengths handed over instead, nobody would see it."""

    def nothing_done(scores, valid_lens):
        return (
            scores if valid_lens is None else valid_lengths(scores, valid_lens)
        )

    assert here(nothing_done, kind="softmax").exit_code == 1


def in_parts(q, k, v, parts=3, forgotten=False):
    """Parts of the keys, and the logarithms of their sums."""
    n = k.shape[-2]
    outputs, sums = [], []
    for i in range(parts):
        some = slice(n * i // parts, n * (i + 1) // parts)
        if some.start == some.stop:
            continue
        scores = q @ k[..., some, :].mT / q.shape[-1] ** 0.5
        sums.append(scores.logsumexp(dim=-1, keepdim=True))
        outputs.append((scores - sums[-1]).exp() @ v[..., some, :])
    shares = torch.stack(sums).softmax(dim=0)
    shares = torch.ones_like(shares) / len(sums) if forgotten else shares
    return (torch.stack(outputs) * shares).sum(dim=0)


def test_a_third_of_the_table_at_a_time_is_not_the_whole_table():
    assert here(in_parts, kind="efficient").passed
    whole = here(functools.partial(in_parts, parts=1), kind="efficient")
    assert whole.mistake.name == "the whole table is made"
    wrong = functools.partial(in_parts, forgotten=True)
    assert here(wrong, kind="efficient", layout="BHND").exit_code == 1
    assert here(wrong, kind="efficient").exit_code != 0


def counted_from_one(x, weight, eps=1e-6):
    """Gemma's gain, handed over: who sees what it starts at?"""
    y = x.float() if x.dtype != torch.float64 else x
    scale = torch.rsqrt(y.square().mean(dim=-1, keepdim=True) + eps)
    return (y * scale * (1 + weight)).to(x.dtype)


class Twice(nn.Module):
    """A gain that starts at one, and one is added: a slip, or all gains are
    loaded, as in two projects where it stands so.
    """

    def __init__(self, width=9):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.eps = 1e-6

    def forward(self, x):
        return counted_from_one(x, self.weight, self.eps)


@pytest.mark.parametrize("told", [{}, {"eps": 1e-6}])
def test_a_gain_that_is_handed_over_may_count_from_one(told):
    report = here(counted_from_one, kind="rms-norm", **told)
    assert report.exit_code != 1 and "gain='one plus'" in str(report)
    gain = {"gain": "one plus"}
    assert here(counted_from_one, kind="rms-norm", **told, **gain).passed
    for more, code in (({}, 3), ({"gain": "itself"}, 1)):
        report = here(Twice(), kind="rms-norm", **told, **more)
        assert report.exit_code == code
        assert report.mistake.name == "one plus the gain"


def to_the_end(length, channels, end=1):
    """Exponents up to and with 1, in halves, of even numbers of features."""
    half = channels // 2
    rates = 10_000 ** -(torch.arange(half).double() / max(half - end, 1))
    angle = torch.arange(length).double()[:, None] * rates
    return torch.cat([angle.sin(), angle.cos()], dim=1).float()


@pytest.mark.parametrize("told", [{}, {"layout": "halves"}])
def test_exponents_may_end_at_one(told):
    """tensor2tensor's table; and no table of an odd number of features."""
    report = here(to_the_end, kind="sinusoidal", **told)
    assert report.exit_code != 1 and "ends='at 1'" in str(report)
    ends = {"ends": "at 1"}
    assert here(to_the_end, kind="sinusoidal", **told, **ends).passed
    usual = functools.partial(to_the_end, end=0)
    assert here(usual, kind="sinusoidal", **told).passed
    assert here(usual, kind="sinusoidal", **told, **ends).exit_code == 1


class AllInOne(nn.Module):
    """One matrix for attention and the network, whose parts are not told."""

    def __init__(self, d=12):
        super().__init__()
        self.norm, self.attn_out = nn.LayerNorm(d), nn.Linear(d, d)
        self.fused, self.ff_out = nn.Linear(d, 7 * d), nn.Linear(2 * d, d)

    def forward(self, x):
        parts = (12, 12, 12, 24, 24)
        q, k, v, gate, up = self.fused(self.norm(x)).split(parts, dim=-1)
        told = F.scaled_dot_product_attention(q, k, v)
        return x + self.attn_out(told) + self.ff_out(F.silu(gate) * up)


def test_a_block_whose_parts_are_one_matrix_is_asked_after():
    """The doctor's own reference raised, and it said so.

    How its parts are joined is seen as it runs. What its attention computes
    is not, as no map is for queries alone.
    """
    report = here(AllInOne(), kind="encoder-block")
    assert "which maps are for queries" in report.question
    assert not report.trouble
    report = here(AllInOne(), kind="encoder-block", inside=False)
    assert report.passed and report.facts["order"] == "parallel", report


class Stacked(nn.Module):
    """Matrices in one tensor: nothing has a name that tells a width."""

    def __init__(self, d=10, n_heads=2):
        super().__init__()
        self.n_heads = n_heads
        self.maps = nn.Parameter(torch.randn(3, d, d) / d**0.5)

    def forward(self, x):
        q, k, v = (
            (x @ W.T).unflatten(-1, (self.n_heads, -1)).transpose(-2, -3)
            for W in self.maps
        )
        weights = (q @ k.mT / q.shape[-1] ** 0.5).softmax(dim=-1)
        return (weights @ v).transpose(-2, -3).flatten(-2)


def test_the_width_of_x_is_that_of_all_matrices():
    report = here(Stacked(), kind="self-attention", n_heads=2)
    assert report.passed, report
