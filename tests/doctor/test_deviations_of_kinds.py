"""What is near a mistake of a bank, and is no twin of it, has its name."""

import functools

import pytest
import torch
from torch import nn

from selfattn.doctor import examine
from selfattn.positions import halves_to_pairs, pairs_to_halves, rope

here = functools.partial(examine, time_limit=None)


def named(thing, kind, **facts):
    report = here(thing, kind=kind, **facts)
    assert report.mistake is not None, report
    return report.mistake.name


def waves(function):
    def table(n, d_model):
        f = torch.arange(d_model, dtype=torch.float64)
        rate = 10_000.0 ** (-2 * (f // 2) / d_model)
        place = torch.arange(n, dtype=torch.float64)[:, None]
        return function(place * rate).float()

    return table


def test_a_pair_may_be_the_same_twice():
    assert named(waves(torch.sin), "sinusoidal") == "sines alone"
    assert named(waves(torch.cos), "sinusoidal") == "cosines alone"


class PlusOne(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(6))
        self.bias = nn.Parameter(torch.zeros(6))
        self.eps = 1e-5

    def forward(self, x):
        given = (6,), self.weight + 1, self.bias, self.eps
        return nn.functional.layer_norm(x, *given)


def test_a_gain_that_starts_at_zero_is_known_in_both_norms():
    assert named(PlusOne(), "layer-norm") == "one plus the gain"


def sizes(x, gain, eps):
    wide = x.float() if x.element_size() < 4 else x
    size = wide.abs().mean(dim=-1, keepdim=True)
    return (wide / (size + eps).sqrt() * gain).to(x.dtype)


def test_a_root_that_was_left_does_not_hide_what_is_under_it():
    assert named(sizes, "rms-norm") == "mean of absolute values"


def other_base(x, offset=0):
    d = x.shape[-1]
    rate = 1000.0 ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)
    place = torch.arange(offset, offset + x.shape[-2], dtype=torch.float64)
    angle = place[:, None] * rate
    cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    a, b = x[..., 0::2], x[..., 1::2]
    pairs = torch.stack((a * cos - b * sin, a * sin + b * cos), dim=-1)
    return pairs.flatten(-2)


@pytest.mark.parametrize(
    ("rotate", "pairs", "name"),
    [
        (other_base, "neighbours", "base of a thousand"),
        (
            lambda x, offset=0: rope(halves_to_pairs(x), offset=offset),
            "neighbours",
            "halves paired",
        ),
        (
            lambda x, offset=0: pairs_to_halves(rope(x, offset=offset)),
            "halves",
            "halves paired",
        ),
        (
            lambda x, offset=0: rope(halves_to_pairs(x), offset=offset),
            "halves",
            "sorted into halves",
        ),
    ],
)
def test_halves_and_neighbours_may_be_mixed_in_four_ways(rotate, pairs, name):
    assert named(rotate, "rope", pairs=pairs, layout="BHND") == name


def tiled(q, k, v):
    """The running sum is that of other maxima than the output's."""
    top = torch.full_like(q[..., :1], -1e30)
    total = out = torch.zeros((), dtype=q.dtype)
    for keys, values in zip(k.split(16, -2), v.split(16, -2), strict=True):
        scores = q @ keys.mT / q.shape[-1] ** 0.5
        new = torch.maximum(top, scores.amax(dim=-1, keepdim=True))
        powers = (scores - new).exp()
        total = total + powers.sum(dim=-1, keepdim=True)
        out = out * (top - new).exp() + powers @ values
        top = new
    return out / total


def test_a_sum_that_is_not_rescaled_is_told_from_an_output_that_is_not():
    assert named(tiled, "efficient", layout="any") == "sum is not rescaled"


def test_weights_that_cancel_are_compared_as_exactly_as_they_can_be():
    """Sums of next to nothing made its numbers large, and no name agreed."""

    def features(x):
        return nn.functional.elu(x) + 1

    def linear(q, k, v):
        q = features(q)
        norm = q @ k.sum(dim=-2).unsqueeze(-1)
        return q @ (k.mT @ v) / norm

    told = {"kernel": features, "layout": "any"}
    assert named(linear, "efficient", **told) == "keys without features"


def test_a_softmax_may_go_wrong_twice_where_it_has_a_mask():
    def weights(scores, mask=None):
        if mask is None:
            return scores.softmax(dim=-1)
        return scores.float().softmax(dim=-1).to(scores.dtype)

    report = here(weights, kind="softmax", mask="keep", empty_row="nan")
    two = {report.mistake.name, report.mistake.also.name}
    assert two == {"computed in float32", "mask ignored"}


def test_what_was_told_to_be_meant_is_never_the_mistake():
    """It was told to give zeros, and that was called what is wrong."""

    def weights(scores, mask=None):
        if mask is None:
            return scores.softmax(dim=-1)
        if scores.shape[-1] != scores.shape[-2]:
            raise ValueError
        hidden = scores.masked_fill(~mask, -torch.inf)
        return hidden.softmax(dim=-1).nan_to_num(0.0)

    report = here(weights, kind="softmax", mask="keep", empty_row="zeros")
    assert not report.passed
    found = report.mistake or report.likeness
    assert found is None or found.name != "empty row gives zeros"
