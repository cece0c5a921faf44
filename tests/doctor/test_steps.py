"""Norms, waves, softmaxes and windows are taken apart as attention is.

Whoever makes two mistakes at once, or one beside angles that are float32, was
told that its numbers are wrong by so and so much, and nothing more.
"""

import functools

import pytest
import torch
from torch import nn

from selfattn.doctor import examine

here = functools.partial(examine, time_limit=None)


def found(thing, kind, **facts):
    report = here(thing, kind=kind, **facts)
    assert report.mistake is not None, report
    also = report.mistake.also
    return {report.mistake.name, also.name if also else None} - {None}


class Rms(nn.Module):
    """As a sample's, which RMSNorm had no name for."""

    def __init__(self):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(6))
        self.eps = 1e-5

    def forward(self, x):
        square = x.square().sum(-1, keepdim=True) / (x.shape[-1] - 1)
        return x / (square + self.eps).sqrt() * self.gain


class Layer(nn.Module):
    """The mean of sizes under the root, and a gain that starts at zero."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(6))
        self.bias = nn.Parameter(torch.zeros(6))
        self.eps = 1e-5

    def forward(self, x):
        rest = x - x.mean(-1, keepdim=True)
        size = rest.abs().mean(-1, keepdim=True)
        plain = rest / (size + self.eps).sqrt()
        return plain * (1 + self.weight) + self.bias


def test_norms_go_wrong_in_two_steps():
    assert found(Rms(), "rms-norm") == {"bessel"}
    both = {"mean of absolute values", "one plus the gain"}
    assert found(Layer(), "layer-norm") == both


def thousand_from_one(n, d_model):
    place = torch.arange(1, n + 1).double()[:, None]
    angle = place * 1000 ** (-torch.arange(0, d_model, 2).double() / d_model)
    pairs = torch.stack((angle.sin(), angle.cos()), -1)
    return pairs.flatten(-2)[:, :d_model].float()


def two_twice(n, d_model):
    """As tutorials write it: 2i of features that are 0, 2, 4 already."""
    pe = torch.zeros(n, d_model)
    place = torch.arange(n).unsqueeze(1).float()
    i = torch.arange(0, d_model, 2).float()
    pe[:, 0::2] = torch.sin(place / 10000 ** (2 * i / d_model))
    pe[:, 1::2] = torch.cos(place / 10000 ** (2 * i / d_model))
    return pe


def test_tables_of_positions_go_wrong_in_two_steps():
    both = {"base of a thousand", "counted from one"}
    assert found(thousand_from_one, "sinusoidal") == both


def test_far_out_a_mistake_in_float32_is_nobodys_twin():
    """At position 5000 its angles were off by 4e-4, and it had no name."""
    name = {"exponent doubled"}
    assert found(two_twice, "sinusoidal", layout="pairs") == name


def plus_and_plus(x, offset=0):
    """Rotate half, without the minus; angles are float32, as usual."""
    n, d = x.shape[-2:]
    rate = 1e4 ** (-torch.arange(0, d, 2) / d)
    angle = torch.arange(offset, offset + n)[:, None] * rate
    cos, sin = (torch.cat((t, t), -1) for t in (angle.cos(), angle.sin()))
    a, b = x.chunk(2, dim=-1)
    return (x * cos + torch.cat((b, a), -1) * sin).to(x.dtype)


def exchanged(x, offset=0):
    n, d = x.shape[-2:]
    rate = 1e3 ** (-torch.arange(0, d, 2) / d)
    angle = torch.arange(offset, offset + n)[:, None] * rate
    sin, cos = angle.cos(), angle.sin()
    a, b = x[..., 0::2], x[..., 1::2]
    pairs = torch.stack((a * cos - b * sin, a * sin + b * cos), dim=-1)
    return pairs.flatten(-2).to(x.dtype)


def test_rotations_go_wrong_in_two_steps():
    assert found(plus_and_plus, "rope", pairs="halves") == {
        "one sign is wrong"
    }
    both = {"sine and cosine exchanged", "base of a thousand"}
    assert found(exchanged, "rope", pairs="neighbours") == both


def bare(scores):
    return scores.exp()


def columns(scores):
    powers = scores.exp()
    return powers / powers.sum(0)


@pytest.mark.parametrize(
    ("weights", "names"),
    [
        (bare, {"overflows", "exponentials not divided"}),
        (columns, {"overflows", "sum over the wrong axis"}),
        (torch.sigmoid, {"sigmoid instead of softmax"}),
    ],
)
def test_softmaxes_go_wrong_in_two_steps(weights, names):
    assert found(weights, "softmax") == names


def sinks(n_q, n_k, window=4):
    i, j = torch.arange(n_q)[:, None] + n_k - n_q, torch.arange(n_k)
    return (j <= i) & ((j < 2) | (i - j < window))


def looking(sees):
    def attend(q, k, v):
        scores = q @ k.mT / q.shape[-1] ** 0.5
        hidden = ~sees(q.shape[-2], k.shape[-2])
        return scores.masked_fill(hidden, -torch.inf).softmax(-1) @ v

    return attend


@pytest.mark.parametrize(
    ("sees", "name"),
    [
        (functools.partial(sinks, window=5), "window one too wide"),
        (functools.partial(sinks, window=3), "window one too narrow"),
        (
            lambda n, m: sinks(n, m) | ~sinks(n, m, m),
            "window open to one side",
        ),
        (lambda n, m: torch.ones(n, m).tril().bool(), "window ignored"),
    ],
)
def test_a_mask_that_it_keeps_by_itself_has_edges(sees, name):
    """Of a window with sinks, one key too many was numbers that are wrong."""
    told = {"table": sinks, "layout": "any", "causal": True, "square": True}
    assert name in found(looking(sees), "attention", **told)


def test_who_hides_himself_but_for_the_first_is_known():
    """Key by key, the first query's sum is never empty."""

    def strict(q, k, v):
        n = q.shape[-2]
        seen = torch.ones(n, n).tril(-1)
        seen[0, 0] = 1
        scores = q @ k.mT / q.shape[-1] ** 0.5
        return scores.masked_fill(seen == 0, -1e30).softmax(-1) @ v

    told = {"causal": True, "square": True, "layout": "any"}
    types = {"dtypes": ("float32", "float64")}
    assert found(strict, "attention", **told, **types) == {"not itself"}


def test_loops_over_small_tiles_come_to_an_end():
    """Tiles of two keys, in Python: a table was sought for minutes."""

    def tiled(q, k, v):
        top = torch.full_like(q[..., :1], -torch.inf)
        total = out = torch.zeros((), dtype=q.dtype)
        for keys, values in zip(k.split(2, -2), v.split(2, -2), strict=True):
            scores = q @ keys.mT / q.shape[-1] ** 0.5
            new = torch.maximum(top, scores.amax(-1, keepdim=True))
            fade, powers = (top - new).exp(), (scores - new).exp()
            total = total * fade + powers.sum(-1, keepdim=True)
            out = out * fade + powers @ values
            top = new
        return out / total

    def by_rows(q, k, v):
        rows = [tiled(row, k, v) for row in q.split(8, -2)]
        return torch.cat(rows, dim=-2)

    assert here(by_rows, kind="efficient", layout="any").passed


class Told(Rms):
    """Its eps is not the one that is told of it."""

    def __init__(self):
        super().__init__()
        self.eps = 1e-3

    def forward(self, x):
        square = x.square().mean(-1, keepdim=True)
        return x / (square + self.eps).sqrt() * self.gain


def test_whose_eps_is_not_what_was_told_is_no_more_healthy():
    """It was set to what was told, and so it was never seen."""
    types = {"dtypes": ("float32", "float64")}
    assert found(Told(), "rms-norm", eps=1e-6, **types) == {"another eps"}
    assert here(Told(), kind="rms-norm", eps=1e-3, **types).passed
    assert here(Told(), kind="rms-norm", **types).passed


class OneMoment(Layer):
    """The mean is a token's, the spread is of each feature over tokens."""

    def forward(self, x):
        rest = x - x.mean(-1, keepdim=True)
        spread = x.var(-2, correction=0, keepdim=True)
        return rest / (spread + self.eps).sqrt() * self.weight + self.bias


class Cut(Layer):
    """Nothing is learnt through the root."""

    def forward(self, x):
        rest = x - x.mean(-1, keepdim=True)
        root = (rest.square().mean(-1, keepdim=True) + self.eps).sqrt()
        return rest / root.detach() * self.weight + self.bias


def test_of_a_norm_one_moment_may_go_wrong_alone_or_learn_nothing():
    assert found(OneMoment(), "layer-norm") == {"over the tokens"}
    assert found(Cut(), "layer-norm") == {"detached"}


def under_a_mask(fill=-torch.inf, wipe=None):
    def weights(scores, mask=None):
        if mask is None:
            return scores.softmax(dim=-1)
        made = scores.masked_fill(~mask, fill).softmax(dim=-1)
        return made if wipe is None else made.masked_fill(wipe(mask), 0.0)

    return weights


@pytest.mark.parametrize(
    ("weights", "name"),
    [
        (under_a_mask(), "empty row gives nan"),
        (
            under_a_mask(-1e9, lambda m: ~m.any(-1, keepdim=True)),
            "a billion in float16",
        ),
        (under_a_mask(wipe=lambda m: ~m.any(-1)), "no keepdim"),
        (
            under_a_mask(wipe=lambda m: ~m.any(-1, keepdim=True).mT),
            "mask on its side",
        ),
    ],
)
def test_a_masked_softmax_is_asked_where_its_mask_goes_wrong(weights, name):
    """A billion was healthy: no mask came in float16; nor was any square."""
    told = {"mask": "keep", "empty_row": "zeros"}
    assert found(weights, "softmax", **told) == {name}


def test_a_position_that_is_told_and_not_used_is_seen():
    """As nothing changed with it, its offset was said not to be there."""

    def stays(x, offset=0):
        n, d = x.shape[-2:]
        rate = 1e4 ** (-torch.arange(0, d, 2).double() / d)
        angle = torch.arange(n)[:, None] * rate
        cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
        a, b = x[..., 0::2], x[..., 1::2]
        pairs = torch.stack((a * cos - b * sin, a * sin + b * cos), dim=-1)
        return pairs.flatten(-2)

    told = {"pairs": "neighbours", "layout": "BHND"}
    assert found(stays, "rope", **told) == {"offset ignored"}


def test_partners_by_neighbours_of_halves_are_half_of_each_convention():
    def mixed(x, offset=0):
        n, d = x.shape[-2:]
        rate = 1e4 ** (-torch.arange(0, d, 2).double() / d)
        angle = torch.arange(offset, offset + n)[:, None] * rate
        angle = torch.cat((angle, angle), dim=-1)
        partner = torch.cat((-x[..., 1::2], x[..., 0::2]), dim=-1)
        return x * angle.cos().to(x.dtype) + partner * angle.sin().to(x.dtype)

    name = {"half of each convention"}
    assert found(mixed, "rope", pairs="halves", layout="BHND") == name


def grouped(order, scale=1 / 3):
    def attend(q, k, v):
        times = q.shape[1] // k.shape[1]
        k, v = order(k, times), order(v, times)
        return (q @ k.mT * (scale or q.shape[-1] ** -0.5)).softmax(-1) @ v

    return attend


def beside(x, times):
    return x.repeat_interleave(times, 1)


def behind(x, times):
    return x.repeat(1, times, 1, 1)


@pytest.mark.parametrize(
    ("attend", "name"),
    [
        (grouped(behind), "groups in another order"),
        (grouped(beside, 1 / 9), "divided by d"),
        (grouped(beside, 3.0), "multiplied by the root"),
        (grouped(beside, None), "own scale not used"),
    ],
)
def test_who_told_a_scale_and_groups_is_held_to_them_by_name(attend, name):
    told = {"layout": "BHND", "grouped": True, "scale": 1 / 3}
    assert found(attend, "attention", **told) == {name}


def test_an_einsum_may_leave_its_axes_in_any_order():
    """Its shape was another one, and that was all that was said."""

    def attend(q, k, v):
        scores = torch.einsum("bhqd,bhkd->bhqk", q, k) / q.shape[-1] ** 0.5
        return torch.einsum("bhqk,bhkd->hbdq", scores.softmax(-1), v)

    name = {"axes in another order"}
    assert found(attend, "attention", layout="BHND") == name


def linear(above=lambda k: k, features=lambda x: nn.functional.elu(x) + 1):
    def attend(q, k, v):
        q, k = features(q), features(k)
        state = torch.einsum("bhnd,bhne->bhde", above(k), v)
        total = torch.einsum("bhnd,bhd->bhn", q, k.sum(dim=2))
        return torch.einsum("bhnd,bhde->bhne", q, state) / total.unsqueeze(-1)

    return attend


@pytest.mark.parametrize(
    ("attend", "name"),
    [
        (linear(lambda k: k[:1]), "keys of the first sequence"),
        (linear(features=nn.functional.elu), "another feature map"),
    ],
)
def test_a_kernel_is_taken_apart_too(attend, name):
    told = {"kernel": lambda x: nn.functional.elu(x) + 1, "layout": "BHND"}
    assert found(attend, "efficient", **told) == {name}


def test_rounded_in_a_softmax_of_few_keys_is_rounded():
    """Its sums were those of other keys, and their last digits nobody's."""

    def attend(q, k, v):
        rows = []
        for t in range(q.shape[-2]):
            seen = slice(max(t - 3, 0), t + 1)
            score = q[..., t : t + 1, :] @ k[..., seen, :].mT
            score = score.float() / q.shape[-1] ** 0.5
            rows.append(score.softmax(-1).to(q) @ v[..., seen, :])
        return torch.cat(rows, dim=-2)

    told = {"layout": "any", "causal": True, "square": True, "window": 4}
    assert found(attend, "efficient", **told) == {"computed in float32"}
