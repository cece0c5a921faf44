"""Sound code with a convention of its own that was called ill for it."""

import functools
import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from selfattn.doctor import examine

here = functools.partial(examine, time_limit=None)


def padded(logits, pad_mask):
    """There is no softmax without a mask here: its callers all have one."""
    low = torch.finfo(logits.dtype).min
    return logits.masked_fill(pad_mask, low).softmax(dim=-1)


def up_to(logits, lengths):
    """Where a text ends is told by its length, and always told."""
    real = torch.arange(logits.shape[-1]) < lengths[:, None, None]
    return logits.masked_fill(~real, -torch.inf).softmax(dim=-1)


def over_queries(logits, pad_mask):
    low = torch.finfo(logits.dtype).min
    return logits.masked_fill(pad_mask, low).softmax(dim=-2)


@pytest.mark.parametrize("told", [{}, {"mask": "block"}])
def test_a_softmax_that_needs_its_mask_is_given_one(told):
    """It raised on 9 of 16 probes, as no mask was handed over."""
    report = here(padded, kind="softmax", **told)
    assert report.passed, report
    report = here(over_queries, kind="softmax", **told)
    assert report.exit_code == 1


def test_a_softmax_that_needs_lengths_is_given_them():
    report = here(up_to, kind="softmax")
    assert report.passed, report


class KeptTriangle(nn.Module):
    """A triangle that is made once, and cut to the length of a text."""

    def __init__(self, longest=32, offset=0):
        super().__init__()
        ones = torch.ones(1, 1, longest, longest, dtype=torch.bool)
        self.register_buffer("past", ones.tril(offset))

    def forward(self, length):
        return self.past[..., :length, :length]


@pytest.mark.parametrize("told", [{}, {"mask": "keep"}, {"arguments": 1}])
def test_a_module_may_make_causal_masks(told):
    """It was called without a number: `__call__` lists no argument."""
    report = here(KeptTriangle(), kind="causal-mask", **told)
    assert report.passed, report
    report = here(KeptTriangle(offset=1), kind="causal-mask", **told)
    assert report.mistake.name == "one too many"


class TablesByPair(nn.Module):
    """Cosine and sine side by side, for (batch, tokens, heads, features)."""

    def __init__(self, d=8, base=10_000.0):
        super().__init__()
        rates = base ** (-torch.arange(0, d, 2) / d)
        angles = torch.arange(128)[:, None] * rates
        table = torch.stack((angles.cos(), angles.sin()), dim=-1)
        self.register_buffer("table", table)

    def forward(self, x):
        pairs = x.unflatten(-1, (-1, 2))
        table = self.table[: x.size(1)].view(
            -1, x.size(1), 1, *pairs.shape[3:]
        )
        (a, b), (cos, sin) = pairs.unbind(-1), table.unbind(-1)
        turned = torch.stack((a * cos - b * sin, a * sin + b * cos), dim=-1)
        return turned.flatten(-2)


def test_a_width_that_fits_by_accident_is_not_the_width():
    """Four features were tried first, and each text had half of the table."""
    told = {"kind": "rope", "dtypes": ["float32"]}
    report = here(TablesByPair(), **told)
    assert report.passed, report
    report = here(TablesByPair(base=500.0), **told)
    assert report.exit_code == 1


class Shiftless(nn.Module):
    """A norm as some models have it: its bias may be left out."""

    def __init__(self, d, bias=False):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d))
        self.bias = nn.Parameter(torch.zeros(d)) if bias else None

    def forward(self, x):
        return F.layer_norm(x, self.weight.shape, self.weight, self.bias)


class Unshifted(Shiftless):
    def forward(self, x):
        return F.layer_norm(x, self.weight.shape, self.weight)


def plain(x, eps=1e-5):
    var, mean = torch.var_mean(x, dim=-1, correction=0, keepdim=True)
    return (x - mean) / (var + eps).sqrt()


@pytest.mark.parametrize(
    "thing", [Shiftless(7), Shiftless(7, True), nn.LayerNorm(7, bias=False)]
)
def test_a_norm_without_a_shift_adds_none(thing):
    """`bias=False` was called ill: "no shift"."""
    report = here(thing, kind="layer-norm")
    assert report.passed, report


def test_a_norm_with_a_shift_adds_it():
    report = here(Unshifted(7, bias=True), kind="layer-norm")
    assert report.mistake.name == "no shift"


def test_a_norm_that_learns_nothing_is_held_to_the_formula():
    """It was asked for its parameters, and not examined."""
    bare = nn.LayerNorm(8, elementwise_affine=False)
    for thing in (plain, bare):
        report = here(thing, kind="layer-norm")
        assert report.passed, report
    report = here(lambda x: x - x.mean(-1, keepdim=True), kind="layer-norm")
    assert report.exit_code == 1


class FromZero(nn.Module):
    """The gain counts from one, and so begins at zero."""

    def __init__(self, d, begin=0.0):
        super().__init__()
        self.weight = nn.Parameter(torch.full((d,), begin))

    def forward(self, x):
        wide = x.float() if x.element_size() < 4 else x
        square = wide.square().mean(dim=-1, keepdim=True)
        return (wide * (square + 1e-6).rsqrt()).to(x.dtype) * (1 + self.weight)


def test_a_gain_that_begins_at_zero_may_count_from_one():
    """Gemma's norm was called ill, which is made so on purpose."""
    named = functools.partial(here, kind="rms-norm", eps=1e-6)
    assert named(FromZero(7)).passed
    assert named(FromZero(7, begin=1.0), gain="one plus").passed
    report = named(FromZero(7, begin=1.0))
    assert report.mistake.name == "one plus the gain"
    report = named(FromZero(7), gain="itself")
    assert report.mistake.name == "one plus the gain"


class Fixed(nn.Module):
    """What it adds stands in its formula, where nobody can set it."""

    def __init__(self, d, eps=1e-6):
        super().__init__()
        self.gamma, self.beta = (
            nn.Parameter(torch.ones(d)),
            nn.Parameter(torch.zeros(d)),
        )
        self.norm = lambda x: F.layer_norm(x, x.shape[-1:], eps=eps)

    def forward(self, x):
        return self.norm(x) * self.gamma + self.beta


@pytest.mark.parametrize("eps", [1e-6, 1e-12, 1e-3])
def test_an_eps_that_cannot_be_set_is_that_of_the_reference(eps):
    """Told what it adds, it raised on all probes; untold, it was wrong."""
    for told in ({}, {"eps": eps}):
        report = here(Fixed(7, eps), kind="layer-norm", **told)
        assert report.passed, report
    report = here(Fixed(7, eps), kind="layer-norm", eps=1e-5)
    assert report.exit_code == 1


def by_length(x, gain, eps=1e-12):
    return F.normalize(x, dim=-1, eps=eps) * math.sqrt(x.shape[-1]) * gain


def only_by_length(x, eps=1e-12):
    return F.normalize(x, dim=-1, eps=eps) * math.sqrt(x.shape[-1])


class ByLength(nn.Module):
    """As in many vision models: no eps is to be seen."""

    def __init__(self, d):
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(d))

    def forward(self, x):
        return F.normalize(x, dim=-1) * x.shape[-1] ** 0.5 * self.gamma


class ByLeastLength(ByLength):
    def __init__(self, d, eps=1e-8):
        super().__init__(d)
        self.eps = eps

    def forward(self, x):
        length = x.norm(dim=-1, keepdim=True).clamp(min=self.eps)
        return x / length * x.shape[-1] ** 0.5 * self.gamma


@pytest.mark.parametrize(
    "thing",
    [by_length, only_by_length, ByLength, ByLength(7), ByLeastLength(7)],
)
def test_a_norm_by_length_is_different_and_not_ill(thing):
    """It was told that its eps stood outside the root, which has none."""
    for told in ({}, {"dtypes": ["float32"]}, {"precision": "exact"}):
        report = here(thing, kind="rms-norm", **told)
        assert report.mistake.name == "eps as a floor", report
        assert report.exit_code == 3, report
        assert "say eps_as='floor'." in report.different
    assert here(thing, kind="rms-norm", eps_as="floor").passed


def test_who_tells_eps_of_a_norm_by_length_promises_the_usual_place():
    for thing in (by_length, ByLeastLength(7)):
        report = here(thing, kind="rms-norm", eps=1e-8)
        assert (report.exit_code, report.mistake.name) == (1, "eps as a floor")


class Outside(ByLeastLength):
    def forward(self, x):
        root = x.square().mean(dim=-1, keepdim=True).sqrt()
        return x / (root + self.eps) * self.gamma


@pytest.mark.parametrize("told", [{}, {"eps": 1e-6}, {"eps_as": "term"}])
def test_an_eps_outside_the_root_is_one_still(told):
    report = here(Outside(7, eps=1e-6), kind="rms-norm", **told)
    assert report.exit_code == 1
    assert report.mistake.name == "eps outside the root"


def test_a_floor_excuses_nothing_else():
    def halved(x, gain, eps=1e-12):
        return by_length(x, gain / 2, eps)

    def centred(x, gain, eps=1e-12):
        return by_length(x - x.mean(dim=-1, keepdim=True), gain, eps)

    for thing in (halved, centred):
        for told in ({}, {"eps_as": "floor"}):
            report = here(thing, kind="rms-norm", **told)
            assert report.exit_code == 1, report
