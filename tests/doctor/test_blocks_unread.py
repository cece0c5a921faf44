"""Blocks in styles that the doctor had not met, and what it made of them."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from selfattn.doctor import examine
from selfattn.doctor.kinds.blocks.recording import called_with

D, H = 8, 2


def attend(q, k, v, seen=None):
    """Heads apart, and what a mask forbids left out."""
    q, k, v = (x.unflatten(-1, (H, -1)).transpose(1, 2) for x in (q, k, v))
    scores = q @ k.mT / math.sqrt(q.shape[-1])
    if seen is not None:
        scores = scores.masked_fill(~seen, torch.finfo(scores.dtype).min)
    return (scores.softmax(-1) @ v).transpose(1, 2).flatten(2)


class Called(nn.Module):
    """As in Keras: whatever a part is given, its `call` gets."""

    def forward(self, *args, **kwargs):
        return self.call(*args, **kwargs)


class Attention(Called):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(D, 3 * D), nn.Linear(D, D)

    def call(self, inputs, pairs=None, *, real=None):
        seen = real if pairs is None else pairs
        if pairs is not None and real is not None:
            seen = pairs & real[:, None, None, :]
        elif real is not None:
            seen = real[:, None, None, :]
        q, k, v = self.qkv(inputs).chunk(3, dim=-1)
        return self.out(attend(q, k, v, seen)), inputs


class Network(Called):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(D, 13), nn.Linear(13, D)

    def call(self, inputs):
        return self.down(torch.relu(self.up(inputs))), None


class SideBySide(nn.Module):
    """Both of what they say are the first of two things."""

    residual = 1.0

    def __init__(self):
        super().__init__()
        self.norm, self.attention = nn.LayerNorm(D), Attention()
        self.network = Network()

    def forward(self, x):
        normed = self.norm(x)
        told, said = self.attention(normed)[0], self.network(normed)[0]
        return self.residual * x + told + said


class Starred(Attention):
    """Its mask has but a name, behind all that has but a place."""

    def forward(self, inputs, *others, real=None):
        return super().forward(inputs, *others, real=real)


class Behind(nn.Module):
    """What has but a place is handed there, and what has a name by that."""

    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(D), nn.LayerNorm(D)
        self.attention, self.ff = Starred(), Network()

    def forward(self, x, mask=None):
        x = x + self.attention(self.norm1(x), None, real=mask)[0]
        return x + self.ff(self.norm2(x))[0]


def test_what_has_but_a_name_is_handed_by_name():
    """It was handed by its place, before what has but a place."""
    part, x = Starred(), torch.randn(2, 5, D)
    given = {"inputs": x, "1": None, "real": torch.ones(2, 5).bool()}
    found = called_with(part, given)[0]
    assert torch.equal(found, part(x, None, real=given["real"])[0])
    report = examine(
        Behind(),
        kind="encoder-block",
        time_limit=None,
        order="pre",
        padding="keep",
    )
    assert report.passed, report


class Without(SideBySide):
    residual = 0.0


SIDE_BY_SIDE = {
    "order": "parallel",
    "attention": "attention",
    "norms": ["norm"],
    "feed_forward": "network",
}


def test_parts_may_take_anything_and_give_more_than_numbers():
    """A sound block of such parts was told that it had no norm, or no
    residual: it was compared with parts that had raised.
    """
    facts = {"kind": "encoder-block", "time_limit": None, **SIDE_BY_SIDE}
    assert examine(SideBySide(), **facts).passed
    report = examine(Without(), **facts)
    assert report.mistake and "residual" in report.mistake.name, report


class TwoMasks(nn.Module):
    """One mask for pairs, one for padding; a subclass forgets either."""

    forgets = ""

    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(D), nn.LayerNorm(D)
        self.attention, self.ff = Attention(), Network()

    def forward(self, x, attention_mask=None, key_padding_mask=None):
        real = None if key_padding_mask is None else ~key_padding_mask
        given = {"pairs": attention_mask, "real": real}
        if self.forgets:
            given[self.forgets] = None
        x = x + self.attention(self.norm1(x), **given)[0]
        return x + self.ff(self.norm2(x))[0]


class NoPairs(TwoMasks):
    forgets = "pairs"


class NoPadding(TwoMasks):
    forgets = "real"


def test_a_mask_for_pairs_and_one_for_padding_are_both_asked():
    """Of two that were told the first was taken for padding, which raised;
    and neither was asked.
    """
    facts = {"mask": "keep", "padding": "block", "order": "pre"}
    asked = {"kind": "encoder-block", "time_limit": None, **facts}
    report = examine(TwoMasks(), **asked)
    assert report.passed and not report.question, report
    assert not [w for w in report.not_asked if "mask" in w], report
    for thing in (NoPairs(), NoPadding()):
        report = examine(thing, **asked)
        assert report.exit_code == 1, report


class Gated(nn.Module):
    """All maps lie in the block; one makes both halves of a gate."""

    def __init__(self, alternate=False, future=False):
        super().__init__()
        self.alternate, self.n_heads, self.future = alternate, H, future
        self.q, self.k, self.v, self.o = (nn.Linear(D, D) for _ in range(4))
        self.up, self.down = nn.Linear(D, 2 * 12), nn.Linear(12, D)
        self.norm1, self.norm2 = nn.LayerNorm(D), nn.LayerNorm(D)

    def fed(self, x):
        y = self.up(x)
        if self.alternate:
            gate, said = y[..., ::2], y[..., 1::2]
        else:
            said, gate = y.chunk(2, dim=-1)
        return self.down(F.gelu(gate) * said)

    def forward(self, x):
        y = self.norm1(x)
        x = x + self.o(attend(self.q(y), self.k(y), self.v(y)))
        return x + self.fed(self.norm2(x))


FLAT = {
    "order": "pre",
    "flat_attention": ["q", "k", "v", "o"],
    "n_heads": H,
}


@pytest.mark.parametrize("alternate", [False, True])
def test_both_halves_of_a_gate_may_be_what_one_map_makes(alternate):
    """The network of such a block was not found, and nothing else asked."""
    facts = {"kind": "encoder-block", "time_limit": None, **FLAT}
    report = examine(Gated(alternate), **facts)
    assert report.passed and not report.question, report


class Unfound(Gated):
    """Its network has a bend that nobody knows, and its texts may meet."""

    meet = 0.0

    def fed(self, x):
        said, gate = self.up(x).chunk(2, dim=-1)
        y = torch.sin(gate) * said + self.meet * said.mean(0)
        return self.down(y)


class Meeting(Unfound):
    meet = 1.0


def test_who_says_that_it_is_plain_is_asked_what_holds_of_all():
    """One part was not found, and so nothing was asked of the block, whose
    texts met in it.
    """
    told = {**FLAT, "formula": "plain"}
    facts = {"kind": "encoder-block", "time_limit": None, **told}
    report = examine(Meeting(), **facts)
    assert report.exit_code == 1, report
    assert "each text is for itself" in {
        finding.probe.claim for finding in report.findings
    }
    assert examine(Unfound(), **facts).passed


class Functions(nn.Module):
    """Its norms are functions of the input, and in no module."""

    meet = 0.0

    def __init__(self):
        super().__init__()
        self.attention, self.ff = Attention(), Network()
        self.gains = nn.Parameter(torch.ones(2, D))

    def forward(self, x):
        first, second = self.gains
        y = F.layer_norm(x, (D,)) * first
        x = x + self.attention(y)[0] + self.meet * y.mean(0)
        return x + self.ff(F.layer_norm(x, (D,)) * second)[0]


class FunctionsMeet(Functions):
    meet = 1.0


def test_who_says_that_it_is_plain_is_asked_though_no_norm_is_found():
    """He was asked which its norms are, and nothing else."""
    told = {"formula": "plain", "order": "pre", "time_limit": None}
    report = examine(FunctionsMeet(), kind="encoder-block", **told)
    assert report.exit_code == 1, report
    assert not examine(Functions(), kind="encoder-block", **told).findings


class Placed(nn.Module):
    """It is told where tokens stand; all maps are packed in one table."""

    past = True

    def __init__(self):
        super().__init__()
        self.tables = nn.Parameter(torch.randn(2, 4, D, D) / 3)
        self.network = nn.Parameter(torch.randn(2, 3, D, 13) / 3)

    def fed(self, x):
        up, down = self.network[0, 0], self.network[1, 2].T
        return torch.relu(x @ up) @ down

    def look(self, tables, x, y, seen):
        q, k, v = x @ tables[0], y @ tables[1], y @ tables[2]
        return attend(q, k, v, seen) @ tables[3]

    def forward(self, x, positions, memory, where=None):
        past = positions[:, None] >= positions
        own, cross = self.tables
        x = x + self.look(own, x, x, past if self.past else None)
        real = None if where is None else where[:, None, None, :]
        x = x + self.look(cross, x, memory, real)
        return x + self.fed(x)


class SeesAll(Placed):
    past = False


def test_a_block_is_told_where_its_tokens_stand():
    """It was called without, and then "I cannot see how wide it is"."""
    told = {"formula": "own", "causal": True, "padding": "keep"}
    facts = {"kind": "decoder-block", "time_limit": None, **told}
    report = examine(Placed(), path="free", **facts)
    assert report.passed, report
    assert not [w for w in report.not_asked if "padding" in w], report
    assert examine(SeesAll(), path="free", **facts).exit_code == 1


class TellsThePast(nn.Module):
    """Its causal mask must be given, with or without one for padding."""

    def __init__(self):
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(D) for _ in range(3))
        self.own, self.cross = Asking(), Asking()
        self.ff = nn.Sequential(nn.Linear(D, 13), nn.ReLU(), nn.Linear(13, D))

    def forward(self, x, memory, tgt_mask, memory_mask=None):
        y = self.norms[0](x)
        x = x + self.own(y, y, tgt_mask)
        real = None if memory_mask is None else memory_mask[:, None, None, :]
        x = x + self.cross(self.norms[1](x), memory, real)
        return x + self.ff(self.norms[2](x))


class Asking(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(D, D) for _ in range(4))

    def forward(self, x, context, seen=None):
        q, k, v = self.q(x), self.k(context), self.v(context)
        return self.o(attend(q, k, v, seen))


def test_padding_is_asked_beside_a_causal_mask_that_must_be_given():
    """It raised, as the causal mask was left out, and padding went unasked."""
    told = {"own_mask": "tgt_mask", "mask": "keep", "padding": "keep"}
    names = {"self_attention": "own", "cross_attention": "cross"}
    report = examine(
        TellsThePast(),
        kind="decoder-block",
        time_limit=None,
        order="pre",
        **told,
        **names,
    )
    assert report.passed, report
    assert not [w for w in report.not_asked if "padding" in w], report


class OfItsOwn(Placed):
    """A gate decides what of the network is added; subclasses spoil a step."""

    def __init__(self):
        super().__init__()
        self.gate = nn.Parameter(torch.randn(D, D) / 3)

    def gated(self, x):
        return x @ self.gate

    def forward(self, x, memory):
        own, cross = self.tables
        past = torch.ones(x.shape[1], x.shape[1]).bool().tril()
        x = x + self.look(own, x, x, past)
        x = x + self.look(cross, x, memory, None)
        return x + torch.sigmoid(self.gated(x)) * self.fed(x)


class Cut(OfItsOwn):
    """Its gate learns, and x does not learn by it."""

    def gated(self, x):
        return 3 * x.detach() @ self.gate


class Fixed(OfItsOwn):
    """X learns by its gate, which does not."""

    def gated(self, x):
        return x @ self.gate.detach()


class Rounded(OfItsOwn):
    def gated(self, x):
        return super().gated(x).bfloat16().to(x.dtype)


@pytest.mark.parametrize(
    ("thing", "name"),
    [
        (Cut, "detached"),
        (Fixed, "detached"),
        (Rounded, "computed in half precision"),
    ],
)
def test_a_block_of_its_own_formula_learns_and_counts_as_it_should(
    thing, name
):
    """What was cut out of the graph, or rounded, was healthy in a block of
    which no number was known, though not in a layer.
    """
    told = {"formula": "own", "causal": True, "path": "free"}
    facts = {"kind": "decoder-block", "time_limit": None, **told}
    assert examine(OfItsOwn(), **facts).passed
    report = examine(thing(), **facts)
    assert report.exit_code == 1, report
    found = report.mistake or report.likeness
    assert found is not None and found.name == name, report
