"""Layers of which the formula was told as a function, a slow one."""

import functools
import math

import pytest
import torch
from torch import nn

from selfattn.doctor import assert_healthy, examine
from selfattn.doctor.kinds.layer import written_mistakes

TOLD = {"layout": "BND", "causal": False, "n_heads": 3}
here = functools.partial(examine, kind="self-attention", time_limit=None)


class Sharpened(nn.Module):
    """Attention whose weights are w (1 + w), and sum to one again.

    Squares would not do: they are those of twice the scores.
    """

    def __init__(self):
        super().__init__()
        self.q_proj, self.k_proj, self.v_proj, self.out_proj = (
            nn.Linear(12, 12) for _ in range(4)
        )

    def projected(self, x, y):
        maps = self.q_proj, self.k_proj, self.v_proj
        return (
            one(given).unflatten(-1, (3, 4)).transpose(1, 2)
            for one, given in zip(maps, (x, y, y), strict=True)
        )

    def weighed(self, scores):
        weights = scores.softmax(-1)
        weights = weights * (1 + weights)
        return weights / weights.sum(-1, keepdim=True)

    def hidden(self, scores, mask):
        return scores.masked_fill(~mask, -torch.inf)

    def merged(self, y):
        return self.out_proj(y.transpose(1, 2).flatten(2))

    def forward(self, x, mask=None):
        q, k, v = self.projected(x, x)
        scores = q @ k.mT / 2
        if mask is not None:
            scores = self.hidden(scores, mask)
        return self.merged(self.weighed(scores) @ v)


def by_loops(layer, x, mask=None):
    """What `Sharpened` should give, a head and a query at a time."""
    q, k, v = layer.q_proj(x), layer.k_proj(x), layer.v_proj(x)
    seen = torch.ones(x.shape[1], x.shape[1]).bool() if mask is None else mask
    outputs = torch.zeros_like(v)
    for head in range(3):
        own = slice(4 * head, 4 * head + 4)
        for i in range(x.shape[1]):
            scores = (q[:, i : i + 1, own] * k[..., own]).sum(-1) / 2
            scores = scores.masked_fill(~seen[i], -torch.inf)
            weights = torch.softmax(scores, dim=-1)
            weights = weights * (1 + weights)
            weights = weights / weights.sum(-1, keepdim=True)
            outputs[:, i, own] = (weights[..., None] * v[..., own]).sum(1)
    return layer.out_proj(outputs)


def by_tables(layer, x, mask=None):
    """The same with a table of all scores of a head."""
    q, k, v = layer.q_proj(x), layer.k_proj(x), layer.v_proj(x)
    outputs = []
    for head in range(3):
        own = slice(4 * head, 4 * head + 4)
        scores = q[..., own] @ k[..., own].mT / 2
        if mask is not None:
            scores = scores.masked_fill(~mask, -torch.inf)
        weights = torch.softmax(scores, dim=-1)
        weights = weights * (1 + weights)
        weights = weights / weights.sum(-1, keepdim=True)
        outputs.append(weights @ v[..., own])
    return layer.out_proj(torch.cat(outputs, dim=-1))


def of(**steps):
    """A layer some of whose steps are others."""
    return type("Other", (Sharpened,), steps)()


def test_who_does_what_he_wrote_is_healthy():
    report = here(Sharpened(), formula=by_loops, **TOLD)
    assert report.passed, report
    asked = [*report.not_asked]
    assert "its numbers" not in asked and report.probes > 20


def test_without_the_formula_the_same_layer_is_asked_for_less():
    wrong = of(weighed=lambda self, scores: 2 * scores.softmax(-1))
    assert here(wrong, formula="own", **TOLD).passed
    report = here(wrong, formula=by_loops, **TOLD)
    assert report.exit_code == 1 and report.snippet
    assert "your formula" in str(report)


def exchanged(self, x, y):
    k, q, v = Sharpened.projected(self, x, y)
    return q, k, v


def keys_twice(self, x, y):
    q, k, _ = Sharpened.projected(self, x, y)
    return q, k, k


def over_queries(self, scores):
    weights = scores.softmax(-2).nan_to_num()
    weights = weights * (1 + weights)
    return weights / weights.sum(-1, keepdim=True)


def louder(self, scores):
    return Sharpened.weighed(self, scores * 2)


def quieter(self, scores):
    return Sharpened.weighed(self, scores / 2)


def turned_out(self, y):
    out = self.out_proj
    return y.transpose(1, 2).flatten(2) @ out.weight + out.bias


def not_out(self, y):
    return y.transpose(1, 2).flatten(2)


def no_shift(self, y):
    return y.transpose(1, 2).flatten(2) @ self.out_proj.weight.mT


@pytest.mark.parametrize(
    ("step", "wrong", "name"),
    [
        ("projected", exchanged, "queries and keys exchanged"),
        ("projected", keys_twice, "keys are the values"),
        ("weighed", over_queries, "softmax over queries"),
        ("weighed", louder, "no scale"),
        ("weighed", quieter, "divided by d"),
        ("merged", turned_out, "output projection transposed"),
        ("merged", not_out, "no output projection"),
        ("merged", no_shift, "biases forgotten"),
        ("hidden", lambda self, s, mask: s, "mask ignored"),
        (
            "hidden",
            lambda self, s, mask: Sharpened.hidden(self, s, mask.mT),
            "mask on its side",
        ),
    ],
)
def test_a_mistake_in_any_formula_has_its_name(step, wrong, name):
    told = {**TOLD, "mask": "keep", "mask_axes": "NN"}
    report = here(of(**{step: wrong}), formula=by_tables, **told)
    assert report.exit_code == 1, report
    found = report.mistake or report.likeness
    assert found is not None and found.name == name


def test_what_was_not_told_is_found_by_what_moves_what():
    report = here(Sharpened(), formula=by_loops)
    assert report.passed, report
    assert report.facts["layout"] == "BND" and not report.facts["causal"]


def test_a_formula_needs_to_take_no_more_than_it_is_told_of():
    report = here(Sharpened(), formula=lambda layer, x: by_loops(layer, x))
    assert report.passed, report


def test_a_formula_that_raises_is_asked_after():
    report = here(Sharpened(), formula=lambda x: x, **TOLD)
    assert report.exit_code == 2
    assert "Your formula raises TypeError" in report.question


def test_a_formula_is_computed_in_float64_where_it_can():
    types = set()

    def noted(layer, x, mask=None):
        types.add((x.dtype, layer.q_proj.weight.dtype))
        return by_loops(layer, x, mask)

    told = {**TOLD, "mask": "keep", "mask_axes": "NN"}
    assert here(Sharpened(), formula=noted, **told).passed
    assert types == {(torch.float64, torch.float64)}


def test_a_formula_that_takes_masks_of_other_axes_accuses_nobody():
    """The doctor had guessed a mask of four axes, which suits the layer, and
    said that this returns another shape than its formula.
    """
    report = here(Sharpened(), formula=by_tables, **TOLD)
    assert report.exit_code != 1, report
    told = {**TOLD, "mask": "keep", "mask_axes": "NN"}
    assert here(Sharpened(), formula=by_tables, **told).passed
    for wrong, said in (
        (lambda layer, x: x[0], "Your formula gives a tensor"),
        (lambda layer, x: None, "Your formula gives None"),
    ):
        asked = here(Sharpened(), formula=wrong, **TOLD).question
        assert said in asked and "for x of shape (2, 7, 12)" in asked


def test_what_an_argument_cannot_say_is_not_said_of_the_formula():
    told = {**TOLD, "mask": "keep", "mask_axes": "NN"}
    report = here(Sharpened(), formula=by_tables, **told)
    assert "your formula" not in " ".join(report.not_asked.values())


def test_what_a_formula_does_not_take_is_not_asked_and_it_is_said_why():
    told = {**TOLD, "mask": "keep", "mask_axes": "NN"}

    def unmasked(layer, x):
        return by_loops(layer, x)

    report = here(Sharpened(), formula=unmasked, **told)
    assert "your formula raises TypeError" in report.not_asked["a mask"]


def test_a_formula_in_a_type_alone_is_asked_in_that():
    def narrow(layer, x, mask=None):
        given = torch.zeros(1)  # float32, whatever x is
        return by_loops(layer, x, mask) + torch.dot(given, given.to(x.dtype))

    def stubborn(layer, x, mask=None):
        if x.dtype != torch.float32:
            raise ValueError("in float32 alone")
        return by_loops(layer, x, mask)

    for formula in (narrow, stubborn):
        wrong = of(weighed=louder)
        told = {**TOLD, "dtypes": ["float32"]}
        assert here(Sharpened(), formula=formula, **told).passed
        assert here(wrong, formula=formula, **told).exit_code == 1


def doubled(self, x, y):
    q, k, v = Sharpened.projected(self, x, y)
    return 2 * q, k, v


class Across(Sharpened):
    """The same, from one sequence to another."""

    def forward(self, x, context):
        q, k, v = self.projected(x, context)
        return self.merged(self.weighed(q @ k.mT / 2) @ v)


def across(layer, x, context):
    """What `Across` should give."""
    q, k, v = layer.projected(x, context)
    weights = torch.softmax(torch.einsum("bhid,bhjd->bhij", q, k) / 2, -1)
    weights = weights * (1 + weights)
    weights = weights / weights.sum(-1, keepdim=True)
    return layer.merged(torch.einsum("bhij,bhjd->bhid", weights, v))


def test_a_formula_may_be_one_of_two_sequences():
    asked = functools.partial(
        examine, kind="cross-attention", time_limit=None, **TOLD
    )
    assert asked(Across(), formula=across).passed
    wrong = type("Other", (Across,), {"projected": doubled})()
    report = asked(wrong, formula=across)
    assert report.passed  # it calls the very step that is wrong
    right = Across.projected

    def apart(layer, x, context):
        q, k, v = right(layer, x, context)
        weights = layer.weighed(q @ k.mT / math.sqrt(4))
        return layer.merged(weights @ v)

    report = asked(wrong, formula=apart)
    assert report.mistake is not None and report.mistake.name == "no scale"


def test_what_moves_that_must_not_is_wrong_by_any_formula():
    def leaks(layer, x, mask=None):
        return by_loops(layer, x + x.mean(0, keepdim=True), mask)

    class Leaks(Sharpened):
        def forward(self, x, mask=None):
            return super().forward(x + x.mean(0, keepdim=True), mask)

    report = here(Leaks(), formula=leaks, **TOLD)
    assert not report.passed


def test_a_formula_must_be_a_word_or_a_function():
    words = "formula must be one of 'plain', 'own', or a function"
    with pytest.raises(ValueError, match=words):
        here(Sharpened(), formula="mine")


def test_a_formula_is_told_in_a_suite_as_well():
    told = {"kind": "self-attention", "formula": by_loops, **TOLD}
    assert_healthy(Sharpened(), **told)
    with pytest.raises(AssertionError, match="queries and keys exchanged"):
        assert_healthy(of(projected=exchanged), **told)


MASK = torch.ones(3, 5).bool().tril()
PADDING = torch.tensor([[True] * 5, [True] * 3 + [False] * 2])
HEARD = {
    "mask ignored": {"padding": PADDING, "causal": True},
    "padding ignored": {"mask": MASK, "causal": True},
    "causal flag ignored": {"mask": MASK, "padding": PADDING},
    "mask upside down": {"mask": ~MASK, "padding": ~PADDING, "causal": True},
    "mask on its side": {"mask": MASK.mT, "padding": PADDING, "causal": True},
    "one mask for the whole batch": {
        "mask": MASK,
        "padding": PADDING[:1].expand(2, -1),
        "causal": True,
    },
}


def heard(x, context=None, **more):
    """What a formula was called with."""
    return x, context, more


def test_a_formula_hears_of_other_masks_in_each_way_that_has_a_name():
    x, context = torch.ones(2, 3, 4), torch.ones(2, 5, 4)
    given = {"mask": MASK, "padding": PADDING, "causal": True}
    known = {m.name: m for m in written_mistakes.of_calls(heard)}
    assert HEARD.keys() <= known.keys()
    for name, expected in HEARD.items():
        got_x, got_context, more = known[name](x, context, **given)
        assert got_x is x and got_context is context
        assert more.keys() == expected.keys(), name
        for n, one in expected.items():
            same = one is more[n] if n == "causal" else one.equal(more[n])
            assert same, (name, n)


class Held(nn.Module):
    """Maps of a layer, apart or in one."""

    def __init__(self, fused):
        super().__init__()
        if fused:
            self.qkv_proj = nn.Linear(6, 18)
        else:
            self.q_proj, self.k_proj, self.v_proj = (
                nn.Linear(6, 6) for _ in range(3)
            )
        self.out_proj = nn.Linear(6, 6)
        self.fused = fused

    def maps(self):
        out = self.out_proj.weight, self.out_proj.bias
        if self.fused:
            one = self.qkv_proj
            thirds = one.weight.chunk(3), one.bias.chunk(3)
            return (*zip(*thirds, strict=True), out)
        three = self.q_proj, self.k_proj, self.v_proj
        return (*((m.weight, m.bias) for m in three), out)


def with_other_weights(q, k, v, out):
    """What becomes of the four maps, (W, b), by the name of each mistake."""
    one, none = torch.eye(6), torch.zeros(6)
    mapped = (one, none)
    return [
        ("queries and keys exchanged", (k, q, v, out)),
        ("parts in another order", (q, v, k, out)),
        ("parts in another order", (v, k, q, out)),
        ("keys are the values", (q, k, k, out)),
        ("one projection for two", (q, q, v, out)),
        ("one projection for two", (q, v, v, out)),
        (
            "matrices of the input transposed",
            (*((W.mT, b) for W, b in (q, k, v)), out),
        ),
        ("output projection transposed", (q, k, v, (out[0].mT, out[1]))),
        ("values not projected", (q, k, mapped, out)),
        ("no output projection", (q, k, v, mapped)),
        ("projection not used", (mapped, k, v, out)),
        ("projection not used", (q, mapped, v, out)),
        ("biases forgotten", (*((W, none) for W, _ in (q, k, v)), out)),
        ("biases forgotten", (q, k, v, (out[0], none))),
        *(
            (name, ((q[0] * by, q[1] * by), k, v, out))
            for name, by in (
                ("no scale", 3**0.5),
                ("divided by d", 3**-0.5),
                ("multiplied by the root", 3.0),
                ("scaled by the width of the model", 0.5**0.5),
                ("number of heads", 1.5**0.5),
            )
        ),
    ]


@pytest.mark.parametrize("fused", [False, True])
def test_a_formula_is_made_with_other_weights_in_each_way(fused):
    layer = Held(fused)
    before = {n: x.clone() for n, x in layer.state_dict().items()}
    made = written_mistakes.of_weights(
        layer, {"n_heads": 2}, lambda other: other.maps
    )
    expected = with_other_weights(*layer.maps())
    assert [m.name for m in made] == [name for name, _ in expected]
    for one, (name, maps) in zip(made, expected, strict=True):
        for (W, b), (its_W, its_b) in zip(one(), maps, strict=True):
            torch.testing.assert_close(W, its_W, msg=name)
            torch.testing.assert_close(b, its_b, msg=name)
    torch.testing.assert_close(layer.state_dict(), before)
