"""What the attention computes that lies in a block of its own formula.

Such a block was asked how it passes on x, and never what its attention does:
without a scale, or with a softmax over queries, it was healthy.
"""

import math

import pytest
import torch
from torch import nn

from selfattn.doctor import examine
from selfattn.doctor.kinds import find_kind
from selfattn.doctor.kinds.blocks import passing_on, properties
from selfattn.doctor.patient import Patient

D, HEADS = 12, 3
SCALES = {"no scale": 1, "divided by d": 4, "multiplied by the root": 0.5}


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


class Spread(nn.Module):
    """Attention of three heads, with a norm in front if there is one."""

    def __init__(self, slip="", norm=False, other=D):
        super().__init__()
        self.norm = nn.LayerNorm(D) if norm else nn.Identity()
        self.to_q, self.to_out = nn.Linear(D, D), nn.Linear(D, D)
        self.to_k, self.to_v = nn.Linear(other, D), nn.Linear(other, D)
        self.heads, self.slip = HEADS, slip

    def weighed(self, q, k):
        scale = SCALES.get(self.slip, 2)
        scores = q @ k.mT / scale
        if self.slip == "no softmax":
            return scores
        if self.slip == "softmax over queries":
            return scores.softmax(-2)
        return scores.softmax(-1)

    def forward(self, x, memory=None):
        x = self.norm(x)
        memory = x if memory is None else memory
        q, k, v = (
            one(given).unflatten(-1, (HEADS, -1)).transpose(1, 2)
            for one, given in (
                (self.to_q, x),
                (self.to_k, memory),
                (self.to_v, memory),
            )
        )
        weights = self.weighed(q, k)
        weights = weights.detach() if self.slip == "detached" else weights
        said = weights @ v
        if self.slip != "merged without transpose":
            said = said.transpose(1, 2)
        return self.to_out(said.reshape(x.shape))


class Beside(nn.Module):
    """A network and what tokens tell each other, both multiplied; dropped."""

    def __init__(self, inner=None, **made):
        super().__init__()
        self.spread = Spread(**made) if inner is None else inner
        self.ln = nn.LayerNorm(D)
        self.net = nn.Sequential(
            nn.Linear(D, 9), nn.GELU(), nn.Linear(9, D), nn.Dropout(0.5)
        )
        self.much = nn.Parameter(torch.tensor(0.5))

    def forward(self, x):
        y = self.ln(x)
        return x + self.much * (self.spread(y) + self.net(y))


class Memory(nn.Module):
    """First a memory of another width, by a gate; then own tokens."""

    def __init__(self, own="", other=""):
        super().__init__()
        self.look = Spread(other, norm=True, other=7)
        self.mix, self.gate = Spread(own), nn.Parameter(torch.tensor([0.1]))

    def forward(self, x, memory):
        x = x + self.look(x, memory) * self.gate.tanh()
        return x + self.mix(x)


def here(block, **told):
    kind = "decoder-block" if isinstance(block, Memory) else "encoder-block"
    said = {"formula": "own", "layout": "BND", **told}
    if isinstance(block, Memory):
        said["causal"] = False
    return examine(block, kind=kind, time_limit=None, **said)


SURE = (
    *("softmax over queries", "multiplied by the root", "detached"),
    "merged without transpose",
)
OPEN = ("no scale", "divided by d", "no softmax")


@pytest.mark.parametrize("norm", [False, True])
@pytest.mark.parametrize("slip", ["", *SURE, *OPEN])
def test_the_attention_in_a_block_of_its_own_is_asked_alone(slip, norm):
    """What may be meant is asked after, and none that is sound is accused."""
    report = here(Beside(slip=slip, norm=norm))
    if not slip:
        assert report.passed, report
        return
    assert report.mistake is not None, report
    assert report.mistake.name == slip, report
    assert report.exit_code == (1 if slip in SURE else 3), report
    assert [*report.inside] == ["spread"]


@pytest.mark.parametrize("slip", OPEN)
def test_who_knows_that_its_attention_is_its_own_says_so(slip):
    assert here(Beside(slip=slip), inside=False).passed


def test_both_attentions_of_a_decoder_block_are_asked():
    """Which is which is seen by what each of them is given."""
    assert here(Memory()).passed
    for role, name in (("own", "mix"), ("other", "look")):
        report = here(Memory(**{role: "detached"}))
        assert [*report.inside] == [name], report
        assert report.exit_code == 1


def found(block, kind="encoder-block"):
    held, said = find_kind(kind), {"formula": "own", "layout": "BND"}
    facts = {**held.read(block, said).facts, "mask": "keep", **said}
    return {n: of for n, (_, of, _) in held.within(block, facts).items()}


def test_attention_is_found_by_what_it_does():
    """Under a name that says nothing, in training, beside what drops."""
    assert found(Beside()) == {"spread": "self-attention"}
    assert found(Memory(), "decoder-block") == {
        "look": "cross-attention",
        "mix": "self-attention",
    }


class Around(nn.Module):
    """What holds an attention, and does something to what it says."""

    def __init__(self, inner):
        super().__init__()
        self.inner, self.last = inner, nn.Linear(D, D)

    def forward(self, x):
        return self.last(torch.relu(self.inner(x)))


def test_of_parts_in_each_other_the_innermost_is_asked():
    """What is around it is no attention: it has other maps besides."""
    assert found(Beside(Around(Spread()))) == {
        "spread.inner": "self-attention"
    }
    report = here(Beside(Around(Spread("softmax over queries"))))
    assert [*report.inside] == ["spread.inner"]


class Near(nn.Module):
    """Maps that nobody knows, and each token sees its neighbours alone."""

    def __init__(self):
        super().__init__()
        self.one, self.two = nn.Linear(D, 3 * D), nn.Linear(D, D)

    def forward(self, x):
        a, b, c = self.one(x).chunk(3, -1)
        n = x.shape[-2]
        far = (torch.arange(n)[:, None] - torch.arange(n)).abs() > 1
        scores = (a @ b.mT / math.sqrt(D)).masked_fill(far, -torch.inf)
        return self.two(scores.softmax(-1) @ c)


def test_what_has_properties_of_its_own_is_not_accused_of_them():
    """It sees whom nobody else's sees, and that is its own affair."""
    assert found(Beside(Near())) == {"spread": "self-attention"}
    report = here(Beside(Near()))
    assert report.passed, report


class Normed(nn.Module):
    """A layer of attention that norms what it is given."""

    def __init__(self, slip=""):
        super().__init__()
        self.spread, self.heads = Spread(slip, norm=True), HEADS
        for name in ("norm", "to_q", "to_k", "to_v", "to_out"):
            setattr(self, name, getattr(self.spread, name))

    def forward(self, x):
        return self.spread(x)


@pytest.mark.parametrize("slip", ["", *SURE])
def test_a_layer_that_norms_what_it_is_given_is_held_to_its_numbers(slip):
    """Of such a layer only properties were asked."""
    report = examine(
        Spread(slip, norm=True),
        kind="self-attention",
        layout="BND",
        causal=False,
        time_limit=None,
    )
    assert "its numbers" not in report.not_asked, report
    assert report.passed == (not slip)
    assert slip == (report.mistake.name if report.mistake else "")


class Fused(nn.Module):
    """One map makes all; a method attends, with a number of heads told."""

    def __init__(self, slip=""):
        super().__init__()
        self.ln, self.slip = nn.LayerNorm(D), slip
        self.wide, self.out = nn.Linear(D, 4 * D), nn.Linear(2 * D, D)

    def attend(self, q, k, v, mask=None):
        said = []
        for a, b, c in zip(
            *(t.chunk(HEADS, -1) for t in (q, k, v)), strict=True
        ):
            scores = a @ b.mT / (1 if self.slip == "no scale" else 2)
            axis = -2 if self.slip == "softmax over queries" else -1
            said.append(scores.softmax(axis) @ c)
        return torch.cat(said, dim=-1)

    def forward(self, x):
        q, k, v, more = self.wide(self.ln(x)).chunk(4, -1)
        said = self.attend(q, k, v)
        return x + self.out(torch.cat([said, more.relu()], dim=-1))


@pytest.mark.parametrize("slip", ["", "no scale", "softmax over queries"])
def test_a_method_that_attends_is_asked_as_a_layer_is(slip):
    """Its block has no part that attends, and one map that makes all."""
    report = here(Fused(slip), n_heads=HEADS)
    assert slip == (report.mistake.name if report.mistake else ""), report
    assert [*report.inside] == (["attend"] if slip else [])


class Overwriting(Beside):
    """A block that adds to what it was given, or to what is needed yet."""

    def __init__(self, at):
        super().__init__()
        self.at = at

    def forward(self, x):
        x = x if self.at == "the start" else x + self.spread(x)
        x += self.much * self.net(self.ln(x))
        y = torch.relu(self.ln(x))
        if self.at == "the end":
            y.mul_(self.much)
            return x + y.sigmoid().mul_(y.exp_())
        return x + y


@pytest.mark.parametrize("at", ["the start", "the end"])
def test_what_a_block_writes_over_is_named_so(at):
    """It was "dropout never begins", or had no name."""
    report = here(Overwriting(at), dropout=0.5)
    assert report.exit_code == 1
    assert report.mistake.name == "changed in place", report


def test_a_block_is_followed_once_for_all_that_is_asked_of_its_path(
    monkeypatch,
):
    """It was followed for each claim anew."""
    followed, seen = passing_on.followed, []
    monkeypatch.setattr(
        passing_on, "followed", lambda *a: seen.append(a) or followed(*a)
    )
    facts = {"formula": "own", "layout": "BND"}
    asked = properties.of_widths("encoder-block", D, None, False, None)
    patient = Patient(Beside().eval(), facts, lambda block, facts: block)
    for probe in asked.probes:
        if probe.claim in passing_on.CLAIMS:
            assert probe.experiment(patient, probe.make()), probe.claim
    assert len(seen) == 1
