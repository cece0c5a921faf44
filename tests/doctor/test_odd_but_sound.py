"""Sound things that were called ill, or that the doctor stumbled over."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from selfattn.doctor import examine
from selfattn.doctor.kind import UnclearError
from selfattn.doctor.kinds.blocks import parts

EXACT = {"dtypes": ("float64", "float32")}


def with_its_sums(scores, dim=-1):
    """Softmax, with the logarithms of its sums."""
    sums = scores.logsumexp(dim, keepdim=True)
    return (scores - sums).exp(), sums.squeeze(dim)


def over_columns(scores, dim=-1):
    weights, sums = with_its_sums(scores, -2 if scores.ndim > 1 else dim)
    return weights, sums


def test_a_softmax_may_give_its_sums_as_well():
    assert examine(with_its_sums, kind="softmax", **EXACT).passed
    found = examine(over_columns, kind="softmax", **EXACT).mistake
    assert found is not None and found.name == "wrong axis"


class KeptEps(nn.Module):
    """Its eps is a buffer, so that it goes where the module goes."""

    def __init__(self, eps=1e-6, factor=1.0):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(5))
        self.register_buffer("eps", torch.tensor(eps, dtype=torch.float64))
        self.factor = factor

    def forward(self, x):
        square = x.square().mean(-1, keepdim=True) * self.factor
        return x / (square + self.eps.item()).sqrt() * self.gain


@pytest.mark.parametrize("told", [{}, {"eps": 1e-6}])
def test_an_eps_may_be_a_buffer(told):
    norm = KeptEps()
    report = examine(norm, kind="rms-norm", **told, **EXACT)
    assert report.passed, str(report)
    assert norm.eps == 1e-6  # what is examined is a copy
    assert not examine(KeptEps(factor=1.1), kind="rms-norm", **EXACT).passed


def turned(x, offset=0):
    """RoPE of (batch, tokens, heads, features), half of whose turn."""
    n, d = x.shape[-3], x.shape[-1] // 2
    powers = torch.arange(0, d, 2, dtype=torch.float64) / d
    places = torch.arange(n, dtype=torch.float64) + offset
    angles = places[:, None, None] / 10000**powers
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    a, b = x[..., :d:2], x[..., 1:d:2]
    both = torch.stack((a * cos - b * sin, a * sin + b * cos), -1)
    return torch.cat((both.flatten(-2), x[..., d:]), -1)


def test_who_told_of_four_axes_promised_nothing_of_three():
    """It counted along the texts of what had no heads."""
    told = {"layout": "BNHD", "pairs": "neighbours", "part": 0.5, **EXACT}
    report = examine(turned, kind="rope", **told)
    assert report.passed, str(report)
    assert "so many axes" in report.lacking["batch"]


class OneForBoth(nn.MultiheadAttention):
    """A child of PyTorch's, with one map for queries and keys."""

    def __init__(self):
        super().__init__(12, 2, batch_first=True)
        both = nn.Linear(12, 24)
        self.in_proj_weight, self.in_proj_bias = both.weight, both.bias

    def forward(self, x):
        both = F.linear(x, self.in_proj_weight, self.in_proj_bias)
        qk, v = both.unflatten(-1, (2, 2, 6)).permute(2, 0, 3, 1, 4)
        scores = qk @ qk.mT / math.sqrt(6)
        heard = (scores.softmax(-1) @ v).transpose(1, 2).flatten(2)
        return self.out_proj(heard), None


def test_a_child_of_pytorchs_layer_may_have_other_maps():
    """Its two maps were read as three, and its output was too wide."""
    told = {"layout": "BND", "causal": False, "d_model": 12, "n_heads": 2}
    report = examine(OneForBoth(), kind="self-attention", **told, **EXACT)
    assert report.passed, str(report)
    assert "projections are not recognised" in str(report)


class ByRoles(nn.Module):
    """Cross-attention whose keys and values come of small networks."""

    def __init__(self):
        super().__init__()
        self.roles = nn.ModuleDict({"query": nn.Linear(12, 12)})
        for role in ("key", "value"):
            made = nn.Linear(9, 14), nn.Tanh(), nn.Linear(14, 12)
            self.roles[role] = nn.Sequential(*made)

    def forward(self, query, key):
        q, k, v = (
            self.roles[role](x)
            for role, x in (("query", query), ("key", key), ("value", key))
        )
        return (q @ k.mT / math.sqrt(12)).softmax(-1) @ v


def test_maps_one_behind_the_other_are_no_heads():
    """They were put side by side, and that raised."""
    told = {"formula": "own", "layout": "BND", "causal": False}
    names = {"x": "query", "context": "key"}
    report = examine(ByRoles(), kind="cross-attention", names=names, **told)
    assert report.passed, str(report)


class GateAndNorm(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate, self.norm = nn.Linear(8, 16), nn.LayerNorm(8)

    def forward(self, new, old):
        return self.norm(old + F.glu(self.gate(new), dim=-1))


class Gated(nn.Module):
    """What each sublayer says passes a gate; its network is a method."""

    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.up, self.down = nn.Linear(8, 8), nn.Linear(8, 8)
        self.first, self.second = GateAndNorm(), GateAndNorm()

    def work(self, x):
        return self.down(F.silu(self.up(x)))

    def forward(self, x):
        x = self.first(self.attention(x, x, x)[0], x)
        return self.second(self.work(x), x)


@pytest.mark.parametrize(
    "network",
    [
        {"feed_forward": "work"},
        {"flat_feed_forward": ("up", F.silu, "down")},
    ],
)
def test_a_block_of_its_own_with_a_free_path_is_held_to_no_parts(network):
    """Its network may be a method, which is no part."""
    told = {
        "formula": "own",
        "path": "free",
        "order": "post",
        "causal": False,
        "norms": ["first.norm", "second.norm"],
    }
    report = examine(Gated(), kind="encoder-block", **told, **network)
    assert report.passed, str(report)
    if "feed_forward" in network:
        told |= {"formula": "plain", "feed_forward": "no_such"}
        asked = examine(Gated(), kind="encoder-block", **told)
        assert "has no 'no_such' that could be called" in asked.question


class ByAMethod(nn.Module):
    """A usual block, but for its network, which is a method."""

    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.up, self.down = nn.Linear(8, 16), nn.Linear(16, 8)
        self.one, self.two = nn.LayerNorm(8), nn.LayerNorm(8)

    def work(self, x):
        return self.down(torch.relu(self.up(x)))

    def forward(self, x):
        y = self.one(x)
        x = x + self.attention(y, y, y)[0]
        return x + self.work(self.two(x))


def test_a_network_may_be_a_method():
    told = {"order": "pre", "norms": ["one", "two"], "feed_forward": "work"}
    report = examine(ByAMethod(), kind="encoder-block", **told)
    assert report.passed, str(report)
    block, x = ByAMethod(), torch.randn(2, 3, 8)
    assert torch.equal(parts.called(block, "work")(x), block.work(x))
    with pytest.raises(UnclearError, match="has no 'network'"):
        parts.called(block, "network")
