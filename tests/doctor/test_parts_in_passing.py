"""Blocks that work out their attention in their own forward.

No part of them could be called, so that they were asked for names they do not
have, and nobody looked at what their attention does. What goes into a
sublayer and what comes out is seen as the block runs: it is asked by itself.
"""

import math

import pytest
import torch
from torch import nn

from selfattn.doctor import examine
from selfattn.doctor.kinds import find_kind
from selfattn.doctor.kinds.blocks import passing_layers, passing_parts

D, HEADS, WIDE = 8, 2, 12


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


def cut(x):
    return x.unflatten(-1, (HEADS, -1)).transpose(1, 2)


def spread(q, k, v, seen=None, slip=""):
    """What is told to queries, by heads, with one of some slips."""
    q, k, v = map(cut, (q, k, v))
    scores = q @ k.mT / (1 if slip == "no scale" else math.sqrt(D / HEADS))
    if seen is not None and slip != "mask ignored":
        hidden = 0.0 if slip == "masked with zero" else -torch.inf
        scores = scores.masked_fill(~seen, hidden)
    told = scores.softmax(-2 if slip == "softmax over queries" else -1) @ v
    if slip == "merged without transpose":
        return told.reshape(len(q), -1, D)
    return told.transpose(1, 2).flatten(2)


class Reader(nn.Module):
    """An encoder block with all of its maps lying in it, by its own names."""

    def __init__(self, slip=""):
        super().__init__()
        self.slip = slip
        self.mix_qkv, self.mix_out = nn.Linear(D, 3 * D), nn.Linear(D, D)
        self.wide, self.back = nn.Linear(D, WIDE), nn.Linear(WIDE, D)
        self.one, self.two = nn.LayerNorm(D), nn.LayerNorm(D)

    def forward(self, x, real=None):
        start, seen = x, None if real is None else real[:, None, None]
        q, k, v = self.mix_qkv(self.one(x)).chunk(3, dim=-1)
        x = x + self.mix_out(spread(q, k, v, seen, self.slip))
        h = self.two(start if self.slip == "side by side" else x)
        h = self.wide(h) if self.slip == "straight" else self.wide(h).relu()
        return x + self.back(h)


class Writer(nn.Module):
    """A decoder block of the same sort, whose context is of another width."""

    def __init__(self, slip="", where="own"):
        super().__init__()
        self.slips = {"own": "", "other": "", where: slip}
        self.q1, self.k1, self.v1 = (nn.Linear(D, D) for _ in range(3))
        self.q2, self.k2, self.v2 = (nn.Linear(n, D) for n in (D, WIDE, WIDE))
        self.o1, self.o2 = nn.Linear(D, D), nn.Linear(D, D)
        self.wide, self.back = nn.Linear(D, WIDE), nn.Linear(WIDE, D)
        self.one, self.two, self.three = (nn.LayerNorm(D) for _ in range(3))

    def forward(self, x, memory):
        past = torch.ones(x.shape[1], x.shape[1]).tril().bool()
        own = spread(
            self.q1(x), self.k1(x), self.v1(x), past, self.slips["own"]
        )
        x = self.one(x + self.o1(own))
        other = self.k2(memory), self.v2(memory)
        told = spread(self.q2(x), *other, slip=self.slips["other"])
        x = self.two(x + self.o2(told))
        return self.three(x + self.back(torch.relu(self.wide(x))))


TOLD = {"layout": "BND", "n_heads": HEADS}
READS = {"order": "pre", "padding": "keep", "norms": ["one", "two"], **TOLD}
WRITES = {"order": "post", "norms": ["one", "two", "three"], **TOLD}


def read(slip=""):
    return examine(
        Reader(slip), kind="encoder-block", time_limit=None, **READS
    )


def written(slip="", where="own"):
    block = Writer(slip, where)
    return examine(block, kind="decoder-block", time_limit=None, **WRITES)


def test_sound_ones_are_healthy_and_need_not_name_their_maps():
    for report in (read(), written()):
        assert report.passed, report
        assert not any("joins" in words for words in report.not_asked)


@pytest.mark.parametrize(
    "slip",
    [
        *("no scale", "softmax over queries", "merged without transpose"),
        *("masked with zero", "side by side"),
    ],
)
def test_the_mistake_of_a_reader_is_named(slip):
    report = read(slip)
    assert report.exit_code == 1, report
    assert report.mistake.name == slip, report


@pytest.mark.parametrize(
    ("slip", "where"),
    [
        *(("no scale", place) for place in ("own", "other")),
        ("merged without transpose", "other"),
        ("softmax over queries", "own"),
    ],
)
def test_each_attention_of_a_writer_is_asked(slip, where):
    """What shows the future may be a softmax over queries."""
    report = written(slip, where)
    assert report.exit_code == 1, report
    assert report.mistake.name == slip, report


def test_what_lies_in_a_block_is_held_to_what_a_block_hides():
    """It is the block's own attention, and hides what that hides."""
    assert written("mask ignored").exit_code == 1
    assert read("mask ignored").exit_code == 1


def test_a_network_that_lies_in_a_block_must_bend():
    report = read("straight")
    assert report.mistake.name == "network without a bend", report


def test_a_map_that_is_made_and_not_used_is_told():
    block = Writer()
    block.v1.forward = block.k1.forward
    report = examine(block, kind="decoder-block", time_limit=None, **WRITES)
    assert report.mistake.name == "projection not used", report


def lying(block, kind, **told):
    held = find_kind(kind)
    facts = {**held.read(block, told).facts, "mask": "keep", **told}
    return held.within(block, facts)


def test_a_sublayer_says_as_a_layer_what_it_says_in_its_block():
    """In either number type, with gradients, and under a mask."""
    block = Reader().eval()
    [(layer, _, told)] = lying(block, "encoder-block", **READS).values()
    assert told["mask_axes"] == "BN" and "takes" not in told
    assert {n for n, _ in layer.named_children()} == {"qkv", "out"}
    [held] = layer.held
    real = torch.ones(2, 5).bool()
    real[1, 3:] = False
    for dtype in (torch.float32, torch.float64):
        x = torch.randn(2, 5, D, dtype=dtype, requires_grad=True)
        layer.to(dtype)
        q, k, v = held.mix_qkv(x).chunk(3, dim=-1)
        right = held.mix_out(spread(q, k, v, real[:, None, None]))
        torch.testing.assert_close(layer(x, real), right)
        mine, its = (
            torch.autograd.grad(y.sum(), x, retain_graph=True)[0]
            for y in (layer(x, real), right)
        )
        torch.testing.assert_close(mine, its)


def test_the_maps_of_each_attention_are_called_as_layers_call_them():
    found = lying(Writer(), "decoder-block", **WRITES)
    kinds = [kind for _, kind, _ in found.values()]
    assert kinds == ["self-attention", "cross-attention"]
    for layer, _, told in found.values():
        assert [n for n, _ in layer.named_children()] == [*"qkvo"]
        assert told["takes"] == ()
    (own, _, told), _ = found.values()
    assert told["causal"] is True
    x, other = torch.randn(2, 4, D), torch.randn(2, 4, D)
    other[:, :3] = x[:, :3]
    torch.testing.assert_close(own(x)[:, :3], own(other)[:, :3])


def test_what_a_name_says_of_a_map():
    said = [passing_layers.word_in(n) for n in ("a.self_q", "k2", "gate")]
    assert said == ["q", "k", ""]


class Turned(Writer):
    """One whose tokens come first all through."""

    def forward(self, x, memory):
        def told(*qkv, **named):
            turned = (one.transpose(0, 1) for one in qkv)
            return spread(*turned, **named).transpose(0, 1)

        past = torch.ones(len(x), len(x)).tril().bool()
        own = told(self.q1(x), self.k1(x), self.v1(x), seen=past)
        x = self.one(x + self.o1(own))
        x = self.two(
            x + self.o2(told(self.q2(x), self.k2(memory), self.v2(memory)))
        )
        return self.three(x + self.back(torch.relu(self.wide(x))))


def test_tokens_may_come_first():
    one = Turned().eval()
    call = find_kind("decoder-block").adapt(one, {"layout": "NBD"})
    parts = passing_parts.of_block(one, call, (D, WIDE))
    x, memory = torch.randn(2, 4, D), torch.randn(2, 3, WIDE)
    for role, right in (
        ("network", one.back(torch.relu(one.wide(x)))),
        ("across", one.o2(spread(one.q2(x), one.k2(memory), one.v2(memory)))),
    ):
        texts = (x, memory) if role == "across" else (x,)
        torch.testing.assert_close(parts[role](*texts), right)


class Free(Writer):
    """One that is told to see all its tokens, and does."""

    def forward(self, x, memory):
        own = spread(self.q1(x), self.k1(x), self.v1(x))
        x = self.one(x + self.o1(own))
        told = spread(self.q2(x), self.k2(memory), self.v2(memory))
        x = self.two(x + self.o2(told))
        return self.three(x + self.back(torch.relu(self.wide(x))))


def test_a_decoder_that_need_not_be_causal_may_see_all():
    """It was ill: of a decoder the claim that was told went unheard."""
    told = {"kind": "decoder-block", "time_limit": None, **WRITES}
    assert examine(Free(), causal=False, **told).passed
    report = examine(Free(), causal=True, **told)
    assert report.mistake.name == "the future is seen", report


@pytest.mark.parametrize("causal", [True, False])
def test_one_that_raises_is_told_its_own_error(causal):
    """It was told one of the doctor's, which compared nothing with it."""

    class Broken(nn.Module):
        def __init__(self):
            super().__init__()
            self.attn = nn.MultiheadAttention(D, HEADS, batch_first=True)
            self.ff = nn.Sequential(
                nn.Linear(D, WIDE), nn.ReLU(), nn.Linear(WIDE, D)
            )
            self.one, self.two = nn.LayerNorm(D), nn.LayerNorm(D)

        def forward(self, x):
            raise KeyError("no such part")

    report = examine(
        Broken(),
        kind="encoder-block",
        time_limit=None,
        causal=causal,
        order="pre",
        layout="BND",
    )
    assert report.exit_code == 1 and "no such part" in str(report), report


class Part(nn.Module):
    """Attention to a context of another width; True in its mask hides."""

    def __init__(self, width):
        super().__init__()
        self.q, self.o = nn.Linear(D, D), nn.Linear(D, D)
        self.k, self.v = nn.Linear(width, D), nn.Linear(width, D)

    def forward(self, x, context, mask=None):
        seen = None if mask is None else ~mask
        maps = self.q(x), self.k(context), self.v(context)
        return self.o(spread(*maps, seen=seen))


class Handing(nn.Module):
    """A decoder block that turns its mask round for its parts."""

    def __init__(self):
        super().__init__()
        self.self_attn, self.cross_attn = Part(D), Part(WIDE)
        self.ffn = nn.Sequential(
            nn.Linear(D, WIDE), nn.ReLU(), nn.Linear(WIDE, D)
        )
        self.norm1, self.norm2, self.norm3 = (nn.LayerNorm(D) for _ in "123")

    def forward(self, x, memory, memory_mask=None):
        future = torch.ones(x.shape[1], x.shape[1]).triu(1).bool()
        x = self.norm1(x + self.self_attn(x, x, future))
        hide = None if memory_mask is None else ~memory_mask
        x = self.norm2(x + self.cross_attn(x, memory, hide))
        return self.norm3(x + self.ffn(x))


def test_what_a_mask_says_to_a_part_is_found_for_a_context_of_any_width():
    """A healthy one was called upside down."""
    report = examine(
        Handing(),
        kind="decoder-block",
        time_limit=None,
        order="post",
        layout="BND",
        mask="keep",
        n_heads=HEADS,
    )
    assert report.exit_code != 1, report


class Straight(nn.Module):
    """A network with a class of its own, and no bend between its maps."""

    def __init__(self, bends):
        super().__init__()
        self.bends = bends
        self.wide, self.back = nn.Linear(D, WIDE), nn.Linear(WIDE, D)

    def forward(self, x):
        h = self.wide(x)
        return self.back(h.relu() if self.bends else h)


class Usual(nn.Module):
    """A block of parts that can all be called."""

    def __init__(self, bends):
        super().__init__()
        self.attention = nn.MultiheadAttention(D, HEADS, batch_first=True)
        self.mlp = Straight(bends)
        self.one, self.two = nn.LayerNorm(D), nn.LayerNorm(D)

    def forward(self, x):
        h = self.one(x)
        x = x + self.attention(h, h, h)[0]
        return x + self.mlp(self.two(x))


def test_a_network_in_a_part_of_its_own_must_bend_too():
    """It was held to be the block's own affair what its network computes."""
    for bends in (True, False):
        report = examine(
            Usual(bends), kind="encoder-block", time_limit=None, order="pre"
        )
        assert report.passed is bends, report
    assert report.mistake.name == "network without a bend"
