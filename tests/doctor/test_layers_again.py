"""What a layer has learnt besides its maps, held to its numbers.

Of a gate, a key that is no token, a temperature, heads that talk or a table
of distances only properties were asked: who sees whom. So a layer that had
one of them and a mistake as well was healthy, as long as everybody saw whom
he should; and an output of NaN or of 1e38 had "moved nothing".
"""

import functools
import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from selfattn.doctor import examine

here = functools.partial(examine, time_limit=None)
HEADS, D = 3, 4
WIDTH = HEADS * D
TOLD = {"layout": "BND", "causal": False, "n_heads": HEADS, "formula": "own"}


def heads(x):
    return x.unflatten(-1, (HEADS, D)).transpose(1, 2)


class Layer(nn.Module):
    """Attention of three heads; a step may be another, and there is a slip."""

    def __init__(self, slip=""):
        super().__init__()
        self.q_proj, self.k_proj, self.v_proj, self.o_proj = (
            nn.Linear(WIDTH, WIDTH) for _ in range(4)
        )
        self.n_heads, self.slip = HEADS, slip

    def made(self, x):
        return self.q_proj(x), self.k_proj(x), self.v_proj(x)

    def more(self, k, v):
        return k, v

    def scored(self, q, k):
        return q @ k.mT / math.sqrt(D)

    def weighed(self, scores):
        return scores.softmax(-1)

    def mixed(self, weights, v):
        return weights @ v

    def leaving(self, merged, x):
        return self.o_proj(merged)

    def forward(self, x):
        q, k, v = map(heads, self.made(x))
        if self.slip == "keys and queries":
            q, k = k, q
        if self.slip == "heads":
            v = v.flip(1)
        k, v = self.more(k, v)
        merged = self.mixed(self.weighed(self.scored(q, k)), v)
        merged = merged.transpose(1, 2).flatten(2)
        return self.leaving(merged, x)


class Gated(Layer):
    """Each feature as far as its gate is open."""

    def __init__(self, slip=""):
        super().__init__(slip)
        self.to_gates = nn.Linear(WIDTH, WIDTH)

    def leaving(self, merged, x):
        return self.o_proj(merged * self.to_gates(x).sigmoid())


class GatedAtTheEnd(Gated):
    """The output as far as its gate is open."""

    def leaving(self, merged, x):
        return self.o_proj(merged) * F.silu(self.to_gates(x))


class GatedByHeads(Layer):
    """Each head as far as its gate is open, and normed before."""

    def __init__(self, slip=""):
        super().__init__(slip)
        self.g_proj = nn.Linear(WIDTH, HEADS)
        self.sub_norm = nn.LayerNorm(D)

    def mixed(self, weights, v):
        return self.sub_norm(weights @ v)

    def leaving(self, merged, x):
        gates = self.g_proj(x).sigmoid().repeat_interleave(D, -1)
        return self.o_proj(merged * gates)


class WithAGateInside(nn.Module):
    """One matrix makes a gate as well, before all the others."""

    def __init__(self, slip=""):
        super().__init__()
        self.in_proj = nn.Linear(WIDTH, 4 * WIDTH)
        self.out_proj = nn.Linear(WIDTH, WIDTH)
        self.n_heads, self.slip = HEADS, slip

    def forward(self, x):
        gate, *three = self.in_proj(x).chunk(4, -1)
        q, k, v = map(heads, three)
        if self.slip == "keys and queries":
            q, k = k, q
        if self.slip == "heads":
            v = v.flip(1)
        y = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
        return self.out_proj(y * gate.sigmoid())


class WithNullKeys(Layer):
    """Two keys that are no tokens stand in front."""

    def __init__(self, slip=""):
        super().__init__(slip)
        self.mem_k = nn.Parameter(torch.randn(HEADS, 2, D))
        self.mem_v = nn.Parameter(torch.randn(HEADS, 2, D))

    def more(self, k, v):
        own = (x.expand(len(k), -1, -1, -1) for x in (self.mem_k, self.mem_v))
        return tuple(
            torch.cat(pair, 2) for pair in zip(own, (k, v), strict=True)
        )


class WithTokens(Layer):
    """Tokens that are learnt are among those that are looked at."""

    def __init__(self, slip=""):
        super().__init__(slip)
        self.memory = nn.Parameter(torch.randn(2, WIDTH))

    def made(self, x):
        whole = torch.cat((self.memory.expand(len(x), -1, -1), x), 1)
        return self.q_proj(x), self.k_proj(whole), self.v_proj(whole)


class Cosines(Layer):
    """Cosines, as warm as each head has learnt."""

    def __init__(self, slip=""):
        super().__init__(slip)
        self.logit_scale = nn.Parameter(torch.zeros(HEADS, 1, 1))

    def scored(self, q, k):
        both = F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).mT
        return both * self.logit_scale.exp()


class Talking(Layer):
    """Heads mix their scores, and their weights."""

    def __init__(self, slip=""):
        super().__init__(slip)
        self.talk_pre = nn.Linear(HEADS, HEADS, bias=False)
        self.talk_post = nn.Linear(HEADS, HEADS, bias=False)

    def scored(self, q, k):
        return self.talk_pre(super().scored(q, k).movedim(1, -1)).movedim(
            -1, 1
        )

    def weighed(self, scores):
        weights = scores.softmax(-1).movedim(1, -1)
        return self.talk_post(weights).movedim(-1, 1)


class Distances(Layer):
    """A key and a value of its own for each distance, up to two."""

    def __init__(self, slip=""):
        super().__init__(slip)
        self.rel_k = nn.Parameter(torch.randn(5, D))
        self.rel_v = nn.Parameter(torch.randn(5, D))

    def rows(self, table, n):
        i = torch.arange(n)
        return table[(i - i[:, None]).clamp(-2, 2) + 2]

    def scored(self, q, k):
        rows = self.rows(self.rel_k, k.shape[-2])
        own = torch.einsum("bhqd,qkd->bhqk", q, rows)
        return (q @ k.mT + own) / math.sqrt(D)

    def mixed(self, weights, v):
        rows = self.rows(self.rel_v, v.shape[-2])
        return weights @ v + torch.einsum("bhqk,qkd->bhqd", weights, rows)


class SigmoidLayer(Layer):
    """Each weight for itself, and smaller the more keys there are."""

    def weighed(self, scores):
        return (scores - math.log(scores.shape[-1])).sigmoid()


class Sums(Layer):
    """Additive scores."""

    def __init__(self, slip=""):
        super().__init__(slip)
        self.score = nn.Linear(D, 1, bias=False)

    def scored(self, q, k):
        both = q[..., :, None, :] + k[..., None, :, :]
        return self.score(both.tanh()).squeeze(-1)


class Convolved(Layer):
    """Keys are convolved along the past, each feature for itself."""

    def __init__(self, slip=""):
        super().__init__(slip)
        self.k_conv = nn.Conv1d(WIDTH, WIDTH, 3, groups=WIDTH, padding=2)

    def made(self, x):
        q, k, v = super().made(x)
        return q, self.k_conv(k.mT)[..., : k.shape[1]].mT, v


class Stacked(nn.Module):
    """Three matrices in one parameter, and a fourth under another name."""

    def __init__(self, slip=""):
        super().__init__()
        self.maps = nn.Parameter(torch.randn(3, WIDTH, WIDTH))
        self.back = nn.Parameter(torch.randn(WIDTH, WIDTH))
        self.n_heads, self.slip = HEADS, slip

    def forward(self, x):
        q, k, v = (heads(x @ W.T) for W in self.maps)
        if self.slip == "keys and queries":
            q, k = k, q
        if self.slip == "heads":
            v = v.flip(1)
        y = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
        return y @ self.back.T


OF_VALUES = (
    Gated,
    GatedAtTheEnd,
    GatedByHeads,
    WithAGateInside,
    WithNullKeys,
    Cosines,
    Talking,
    SigmoidLayer,
    Convolved,
    Stacked,
    Distances,
    Sums,
    WithTokens,
)


def told(made):
    """What is said of a layer: of one of plain attention, no formula."""
    return {**TOLD, "formula": None} if made is Stacked else TOLD


def asked(made, slip=""):
    facts = {n: x for n, x in told(made).items() if x is not None}
    return here(made(slip), kind="self-attention", **facts)


@pytest.mark.parametrize("made", OF_VALUES)
def test_what_is_learnt_besides_is_sound(made):
    assert asked(made).passed


@pytest.mark.parametrize("made", [o for o in OF_VALUES if o is not WithTokens])
def test_and_a_mistake_beside_it_has_its_name(made):
    report = asked(made, "heads")
    assert report.mistake is not None
    assert report.mistake.name in (
        "heads in another order",
        "merged in the other order",
    )


@pytest.mark.parametrize("made", [Gated, WithNullKeys, Distances])
def test_so_have_queries_that_are_keys(made):
    report = asked(made, "keys and queries")
    assert report.mistake is not None
    assert report.mistake.name == "queries and keys exchanged"


class Padded(WithNullKeys):
    """It takes a mask for padding; with a slip in it, if told."""

    def forward(self, x, mask=None):
        q, k, v = map(heads, self.made(x))
        k, v = self.more(k, v)
        scores, low = self.scored(q, k), -torch.finfo(x.dtype).max
        if mask is not None:
            seen = F.pad(mask, (2, 0), value=True)[:, None, None]
            seen = ~seen if self.slip == "upside down" else seen
            if self.slip != "late":
                scores = scores.masked_fill(~seen, -torch.inf)
        weights = scores.softmax(-1)
        if mask is not None and self.slip == "late":
            weights = weights.masked_fill(~seen, low)
        return self.o_proj((weights @ v).transpose(1, 2).flatten(2))


def with_padding(slip):
    facts = {**TOLD, "padding": "keep"}
    return here(Padded(slip), kind="self-attention", **facts)


def test_keys_that_are_no_tokens_are_hidden_from_nobody():
    assert with_padding("").passed


def test_nor_is_a_mask_upside_down_without_its_name_there():
    report = with_padding("upside down")
    assert report.mistake.name == "mask upside down"


class Odd(Padded):
    """A formula of its own in which nothing is found that is known."""

    def weighed(self, scores):
        return scores.softmax(-1).square()


def test_what_becomes_nan_has_moved():
    """A mask after the softmax made numbers that no float32 can hold."""

    class Unknown(Odd):
        def forward(self, x, mask=None):
            gone = super().forward(x, mask).square().square()
            return gone - gone.mean(-1, keepdim=True) + x.sin().cumsum(-1)

    facts = {**TOLD, "padding": "keep"}
    well = here(Unknown(""), kind="self-attention", **facts)
    ill = here(Unknown("late"), kind="self-attention", **facts)
    assert well.passed
    assert not ill.passed


def near(n_q, n_k):
    """A window of three behind each query."""
    back = torch.arange(n_q)[:, None] - torch.arange(n_k)
    return (back >= 0) & (back < 3)


class InAWindow(Gated):
    """It keeps a window of three, or another, if there is a slip."""

    def weighed(self, scores):
        back = torch.arange(scores.shape[-1])
        back = back[:, None] - back
        wide = 4 if self.slip == "wide" else 3
        seen = (back >= 0) & (back < wide)
        if self.slip == "alone":
            seen = back == 0
        return scores.masked_fill(~seen, -torch.inf).softmax(-1)


@pytest.mark.parametrize(
    ("slip", "name"),
    [
        ("", None),
        ("wide", "window one too wide"),
        ("alone", "itself alone"),
    ],
)
def test_a_window_beside_a_gate_is_told_by_its_edge(slip, name):
    facts = {**TOLD, "causal": True, "table": near}
    report = here(InAWindow(slip), kind="self-attention", **facts)
    assert (report.mistake and report.mistake.name) == name
    assert report.passed == (name is None)


class ChannelsFirst(nn.Module):
    """Convolutions of width one; merged without their transpose, if told."""

    def __init__(self, slip=""):
        super().__init__()
        self.conv_q, self.conv_k, self.conv_v, self.conv_o = (
            nn.Conv1d(WIDTH, WIDTH, 1) for _ in range(4)
        )
        self.n_heads, self.slip = HEADS, slip

    def forward(self, x):
        three = (one(x.mT) for one in (self.conv_q, self.conv_k, self.conv_v))
        q, k, v = (t.unflatten(1, (HEADS, D)).mT for t in three)
        y = F.scaled_dot_product_attention(q, k, v)
        if self.slip != "merge":
            y = y.mT
        return self.conv_o(y.reshape(len(x), WIDTH, -1)).mT


def test_channels_first_and_no_transpose_has_its_name():
    facts = {"layout": "BND", "causal": False, "n_heads": HEADS}
    well = here(ChannelsFirst(), kind="self-attention", **facts)
    ill = here(ChannelsFirst("merge"), kind="self-attention", **facts)
    assert well.passed
    assert ill.mistake.name == "merged without transpose"


class Latents(nn.Module):
    """Queries look at themselves as well as at the context."""

    def __init__(self, slip=""):
        super().__init__()
        self.to_q, self.to_k, self.to_v, self.to_out = (
            nn.Linear(WIDTH, WIDTH) for _ in range(4)
        )
        self.norm = nn.LayerNorm(WIDTH)
        self.heads, self.slip = HEADS, slip

    def forward(self, x, context):
        x, context = self.norm(x), self.norm(context)
        both = torch.cat((context, x), 1)
        q, k, v = map(heads, (self.to_q(x), self.to_k(both), self.to_v(both)))
        scale = 1.0 if self.slip else None
        y = F.scaled_dot_product_attention(q, k, v, scale=scale)
        return self.to_out(y.transpose(1, 2).flatten(2))


def test_those_who_look_may_be_looked_at():
    facts = {"layout": "BND", "n_heads": HEADS, "formula": "own"}
    well = here(Latents(), kind="cross-attention", **facts)
    ill = here(Latents("no scale"), kind="cross-attention", **facts)
    assert well.passed
    assert ill.mistake.name == "no scale"
