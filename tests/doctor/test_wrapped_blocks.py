"""The doctor on blocks whose sublayers are joined in other ways.

Strangers' sound blocks were refused, or the doctor's own reference raised:
with a mask that must be given, norms inside wrappers, one norm for both
sublayers, or two for each.
"""

import pytest
import torch
from torch import nn

from selfattn.doctor import examine

D = 12


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


class Attention(nn.Module):
    """Two heads, and a mask that is True where one may look."""

    def __init__(self):
        super().__init__()
        self.q, self.k = nn.Linear(D, D), nn.Linear(D, D)
        self.v, self.o = nn.Linear(D, D), nn.Linear(D, D)

    def forward(self, query, key, value, mask=None):
        q, k, v = (
            maps(x).unflatten(-1, (2, -1)).transpose(1, 2)
            for maps, x in (
                (self.q, query),
                (self.k, key),
                (self.v, value),
            )
        )
        scores = q @ k.mT / (D // 2) ** 0.5
        if mask is not None:  # (batch, n, n_k), or a row for all queries
            scores = scores.masked_fill(~mask.unsqueeze(1), -1e9)
        return self.o((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))


def network():
    return nn.Sequential(nn.Linear(D, 19), nn.GELU(), nn.Linear(19, D))


class Connection(nn.Module):
    """A norm, what is wrapped, and the path past both."""

    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(D)

    def forward(self, x, sublayer):
        return x + sublayer(self.norm(x))


class Wrapping(nn.Module):
    """Each sublayer in a wrapper; both masks must be given."""

    def __init__(self, sees_mask=True):
        super().__init__()
        self.self_attn, self.src_attn = Attention(), Attention()
        self.feed_forward = network()
        self.sublayer = nn.ModuleList(Connection() for _ in range(3))
        self.sees_mask = sees_mask

    def forward(self, x, memory, src_mask, tgt_mask):
        m, seen = memory, src_mask if self.sees_mask else None
        x = self.sublayer[0](x, lambda x: self.self_attn(x, x, x, tgt_mask))
        x = self.sublayer[1](x, lambda x: self.src_attn(x, m, m, seen))
        return self.sublayer[2](x, self.feed_forward)


class Layer(nn.Module):
    """A sublayer with its own norm and path: attention, or a gated network."""

    def __init__(self, attends, path=True):
        super().__init__()
        self.layer_norm, self.path = nn.LayerNorm(D), path
        self.Attention = Attention() if attends else None
        if not attends:
            self.wi_0, self.wi_1 = nn.Linear(D, 17), nn.Linear(D, 17)
            self.wo = nn.Linear(17, D)

    def forward(self, x, context=None, causal=False):
        y = self.layer_norm(x)
        if self.Attention is None:
            out = self.wo(self.wi_0(y).relu() * self.wi_1(y))
        else:
            n, seen = x.shape[1], y if context is None else context
            past = torch.ones(1, n, n, dtype=torch.bool).tril()
            out = self.Attention(y, seen, seen, past if causal else None)
        return x + out if self.path else out


class OfLayers(nn.Module):
    """Whole sublayers in a list."""

    def __init__(self, path=True):
        super().__init__()
        self.layer = nn.ModuleList(
            [Layer(True), Layer(True), Layer(False, path)]
        )

    def forward(self, x, context):
        x = self.layer[0](x, causal=True)
        return self.layer[2](self.layer[1](x, context))


class SideBySide(nn.Module):
    """Attention and network behind one norm."""

    def __init__(self, in_a_row=False):
        super().__init__()
        self.ln, self.attn, self.mlp = nn.LayerNorm(D), Attention(), network()
        self.in_a_row = in_a_row

    def forward(self, x, mask=None):
        y = self.ln(x)
        if mask is not None:
            mask = mask.expand(len(x), -1, -1)
        attended = self.attn(y, y, y, mask)
        if self.in_a_row:
            x = x + attended
            return x + self.mlp(self.ln(x))
        return x + attended + self.mlp(y)


class Sandwich(nn.Module):
    """A norm before each sublayer and another behind it."""

    def __init__(self, behind=True):
        super().__init__()
        self.before, self.after = nn.LayerNorm(D), nn.LayerNorm(D)
        self.before_mlp, self.after_mlp = nn.LayerNorm(D), nn.LayerNorm(D)
        self.attn, self.mlp, self.behind = Attention(), network(), behind

    def forward(self, x):
        y = self.before(x)
        y = self.attn(y, y, y)
        x = x + (self.after(y) if self.behind else y)
        return x + self.after_mlp(self.mlp(self.before_mlp(x)))


@pytest.mark.parametrize(
    ("kind", "make", "told"),
    [
        ("decoder-block", Wrapping, {"order": "pre", "mask": "keep"}),
        ("decoder-block", OfLayers, {"order": "pre"}),
        ("encoder-block", SideBySide, {"order": "parallel", "mask": "keep"}),
        ("encoder-block", Sandwich, {"order": "sandwich"}),
    ],
)
def test_a_sound_one_is_healthy_told_or_not(kind, make, told):
    for facts in (told, {}):
        report = examine(make(), kind=kind, time_limit=None, **facts)
        assert report.passed, report
    assert report.facts["order"] == told["order"]


@pytest.mark.parametrize(
    ("kind", "ill", "told", "name"),
    [
        (
            "decoder-block",
            Wrapping(sees_mask=False),
            {"order": "pre", "mask": "keep"},
            "mask of the context not passed on",
        ),
        (
            "decoder-block",
            OfLayers(path=False),
            {"order": "pre"},
            "no residual around the feed forward",
        ),
        (
            "encoder-block",
            SideBySide(in_a_row=True),
            {"order": "parallel", "mask": "keep"},
            "one after the other",
        ),
    ],
)
def test_one_with_a_mistake_is_told_which(kind, ill, told, name):
    report = examine(ill, kind=kind, time_limit=None, **told)
    assert report.mistake is not None, report
    assert report.mistake.name == name


def test_a_norm_that_a_sandwich_lacks_is_missed():
    report = examine(
        Sandwich(behind=False),
        kind="encoder-block",
        order="sandwich",
        time_limit=None,
    )
    assert report.mistake is None and len(report.findings) > 3, report


def test_a_block_with_three_norms_is_told_that_nobody_said_where():
    odd = Sandwich()
    odd.after = nn.Identity()
    report = examine(odd, kind="encoder-block", time_limit=None)
    assert any(
        "2 norms, but I find 3" in why for why in report.not_asked.values()
    )
