"""Layers with a formula of their own, held to its numbers all the same."""

import functools

import pytest
import torch
from torch import nn

from selfattn.doctor import examine
from selfattn.doctor.kinds.layer import fitting

here = functools.partial(examine, time_limit=None)
TOLD = {"layout": "BND", "causal": True, "n_heads": 3, "formula": "own"}


def turned(x):
    """Features turned by their places, halves apart."""
    rates = 10_000.0 ** (-torch.arange(2) / 2)
    angle = torch.arange(x.shape[-2])[:, None] * rates
    cos, sin = angle.cos().to(x), angle.sin().to(x)
    a, b = x.chunk(2, dim=-1)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1)


class Layer(nn.Module):
    """Causal attention of three heads; a step may be another."""

    def __init__(self):
        super().__init__()
        self.q_proj, self.k_proj, self.v_proj, self.o_proj = (
            nn.Linear(12, 12) for _ in range(4)
        )
        self.n_heads = 3

    def before(self, q, k):
        return q, k

    def scored(self, q, k):
        return q @ k.mT / 2

    def weighed(self, scores):
        return scores.softmax(-1)

    def after(self, y, x):
        return y

    def forward(self, x):
        q, k, v = (
            one(x).unflatten(-1, (3, 4)).transpose(1, 2)
            for one in (self.q_proj, self.k_proj, self.v_proj)
        )
        scores = self.scored(*self.before(q, k))
        past = torch.ones_like(scores).bool().tril()
        weights = self.weighed(scores.masked_fill(~past, -torch.inf))
        merged = (weights @ v).transpose(1, 2).flatten(2)
        return self.o_proj(self.after(merged, x))


class Rotated(Layer):
    """Queries and keys normed, a head at a time, and turned."""

    def __init__(self):
        super().__init__()
        self.q_norm, self.k_norm = nn.RMSNorm(4), nn.RMSNorm(4)

    def before(self, q, k):
        return turned(self.q_norm(q)), turned(self.k_norm(k))


class Sinking(Layer):
    """A number for each head takes part in the softmax."""

    def __init__(self):
        super().__init__()
        self.sinks = nn.Parameter(torch.zeros(3))

    def weighed(self, scores):
        one = self.sinks.to(scores)[:, None, None].expand_as(scores[..., :1])
        return torch.cat((scores, one), -1).softmax(-1)[..., :-1]


class Sloping(Layer):
    """What is far away counts less, by a slope for each head."""

    def __init__(self):
        super().__init__()
        self.register_buffer("slopes", torch.tensor([0.5, 0.25, 0.125]))

    def scored(self, q, k):
        i = torch.arange(q.shape[-2])
        far = (i[:, None] - i).abs()
        return q @ k.mT / 2 - self.slopes.to(q)[:, None, None] * far


class Gated(Layer):
    """The heads' output is let through by a gate."""

    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(12, 12)

    def after(self, y, x):
        return y * self.gate(x).sigmoid()


class Learnt(Layer):
    """A number is learnt for each distance and head."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(7, 3)

    def scored(self, q, k):
        i = torch.arange(q.shape[-2])
        far = (i - i[:, None]).clamp(-3, 3) + 3
        return q @ k.mT / 2 + self.table(far).movedim(-1, 0).to(q)


OWN = (Rotated, Sinking, Sloping, Gated, Learnt)


@pytest.mark.parametrize("layer", OWN)
def test_a_formula_that_is_found_in_a_layer_is_held_to_its_numbers(layer):
    """Only properties were asked of them, and any number would do."""
    report = here(layer(), kind="self-attention", **TOLD)
    assert report.passed, report
    assert "its numbers" not in report.not_asked


@pytest.mark.parametrize("layer", OWN)
def test_a_mistake_beside_a_formula_of_its_own_is_named(layer):
    """A softmax over queries was called "not causal", or healthy."""

    class Wrong(layer):
        def weighed(self, scores):
            return super().weighed(scores.mT).mT.nan_to_num()

    if layer is Sinking:  # whose softmax is not the usual one
        Wrong.weighed = layer.weighed
        Wrong.scored = lambda self, q, k: q @ q.mT / 2
    report = here(Wrong(), kind="self-attention", **TOLD)
    wanted = "queries as keys" if layer is Sinking else "softmax over queries"
    assert report.mistake.name == wanted, report
    assert report.exit_code == 1


def test_who_has_a_formula_of_its_own_may_have_no_scale():
    """T5 keeps its scale in its first numbers: that is asked after."""

    class Unscaled(Learnt):
        def scored(self, q, k):
            return super().scored(2 * q, k)

    report = here(Unscaled(), kind="self-attention", **TOLD)
    assert report.mistake.name == "no scale"
    assert "scale=1.0" in report.different
    told = here(Unscaled(), kind="self-attention", scale=1.0, **TOLD)
    assert told.passed, told
    assert here(Unscaled(), kind="self-attention", layout="BND").passed


def test_a_formula_of_its_own_that_nobody_told_is_found():
    report = here(Sinking(), kind="self-attention")
    assert report.passed, report
    assert report.facts["formula"] == "own"
    assert report.facts["causal"] is True


def test_whoever_raises_gives_no_projection_away():
    """Of a layer that raised in every call it surely said which is unused."""

    class Raising(Layer):
        def before(self, q, k):
            raise ValueError("no place was told")

    report = here(Raising(), kind="self-attention", layout="BND")
    assert report.mistake is None, report


def test_keys_alike_at_other_places_are_not_alike_once_they_turn():
    """Llama's attention, whose mask is added, was ill without a name."""

    class Masked(Rotated):
        def forward(self, x, mask=None):
            self.added = 0 if mask is None else mask
            return super().forward(x)

        def scored(self, q, k):
            self.scores = super().scored(q, k)
            return self.scores

        def weighed(self, scores):  # nothing is hidden but by the mask
            return (self.scores + self.added).softmax(-1)

    told = {**TOLD, "causal": False, "mask": "add", "empty_row": "nan"}
    report = here(Masked(), kind="self-attention", **told)
    assert report.passed, report
    assert "its numbers" not in report.not_asked


class Points(nn.Module):
    """Clouds of points: a weight for each feature, of a difference."""

    def __init__(self):
        super().__init__()
        self.to_q, self.to_k, self.to_v, self.out = (
            nn.Linear(2, 2) for _ in range(4)
        )
        self.score = nn.Sequential(nn.Linear(2, 9), nn.ReLU(), nn.Linear(9, 2))

    def forward(self, x):
        q, k, v = self.to_q(x), self.to_k(x), self.to_v(x)
        between = q[:, :, None] - k[:, None]
        weights = self.score(between).softmax(dim=-2)
        return self.out(torch.einsum("bijd,bjd->bid", weights, v))


def test_what_is_found_in_a_layer_is_found_once(monkeypatch):
    """It was looked for again, in a copy, and so took half a minute."""
    torch.manual_seed(0)
    look, seen, turned_too = fitting.look, [], []

    def counted(module, facts, *rest):
        seen.append(repr(facts))
        return look(module, facts, *rest)

    def beside(options, *rest):
        turned_too.extend(one.turned for one in options)

    monkeypatch.setattr(fitting, "look", counted)
    monkeypatch.setattr(fitting, "beside", beside)
    report = here(Points(), kind="self-attention")
    assert report.passed and "its numbers" in report.not_asked, report
    assert len(seen) == len({*seen}) > 4
    assert turned_too and not any(turned_too)


@pytest.mark.parametrize(
    ("layer", "tells"), [(Layer, False), (Rotated, True), (Sinking, False)]
)
def test_who_turns_tells_places(layer, tells):
    torch.manual_seed(0)
    x = torch.randn(2, 5, 12)
    assert fitting.tells_places(layer(), [x]) == tells
    made = layer()
    mirrored = lambda x: made(x.flip(1)).flip(1)  # noqa: E731
    assert fitting.tells_places(mirrored, [x]) == tells


def test_who_looks_at_another_sequence_tells_its_places():
    torch.manual_seed(0)
    x, memory = torch.randn(2, 5, 4), torch.randn(2, 6, 4)
    plain = lambda x, y: (x @ y.mT).softmax(-1) @ y  # noqa: E731
    assert not fitting.tells_places(plain, [x, memory])
    placed = lambda x, y: (x @ turned(y).mT).softmax(-1) @ y  # noqa: E731
    assert fitting.tells_places(placed, [x, memory])
