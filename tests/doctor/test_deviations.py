"""Attention step by step, and what is done otherwise at one step or two."""

import functools
import math

import pytest
import torch
from torch import nn

from selfattn import attention
from selfattn.doctor import examine
from selfattn.doctor.deviations import hiding, scores
from selfattn.doctor.deviations.design import (
    USUAL,
    Deviation,
    attend,
    pairs,
    singles,
    without,
)
from selfattn.doctor.probes import numbers
from selfattn.masks import causal_mask

here = functools.partial(examine, time_limit=None)


def inputs(n_k=5):
    """Queries, keys and values, of two texts and three heads."""
    shapes = ((2, 3, 5, 7), (2, 3, n_k, 7), (2, 3, n_k, 9))
    return [  # which no type of fewer digits holds
        numbers(*shape, seed=seed, dtype=torch.float64) * 4 / 3
        for seed, shape in enumerate(shapes)
    ]


def masked():
    """The same with a mask for each text, and the causal flag."""
    seen = torch.ones(2, 1, 5, 5).bool()
    seen[0, ..., 1] = seen[1, ..., 2] = seen[:, :, 3, 0] = False
    return (*inputs(), seen, True)


def test_the_usual_design_is_attention():
    assert torch.allclose(attend(USUAL, *inputs(7)), attention(*inputs(7)))
    q, k, v, mask, causal = masked()
    expected = attention(q, k, v, mask=mask, causal=causal)
    assert torch.allclose(attend(USUAL, *masked()), expected)


# What shows on no values: gradients, and what overflows on loud scores alone.
QUIET = {"detached", "softmax that overflows", "mask after softmax mended"}


@pytest.mark.parametrize(
    "one",
    (*scores.ALL, *hiding.FILLS, *hiding.MEANINGS, *hiding.TRIANGLES),
    ids=lambda one: getattr(one.known, "__name__", "") or one.known.name,
)
def test_each_deviation_makes_a_difference(one):
    name = singles([one], lambda change: change)[0].name
    if name in QUIET:
        return
    assert differs(one, *masked()) or differs(one, *inputs(7), causal=True)


def differs(one, *given, **options):
    """Whether it gives other numbers than the usual design, or none."""
    usual = attend(USUAL, *given, **options)
    try:
        other = attend(one.of(USUAL), *given, **options)
    except RuntimeError:
        return True
    return usual.shape != other.shape or not torch.allclose(
        usual, other, rtol=0, atol=1e-9
    )


@pytest.mark.parametrize("one", hiding.SAFE)
def test_what_is_harmless_makes_none_where_something_is_seen(one):
    made = attend(one.of(USUAL), *masked())
    assert torch.allclose(made, attend(USUAL, *masked()), atol=1e-6)


def test_two_of_one_step_are_no_pair():
    listed = [*scores.SCALES[:3], hiding.FILLS[0]]
    found = list(pairs(listed, lambda change: change, hiding.SAFE[:1]))
    names = [(one.name, one.also and one.also.name) for one in found]
    assert ("no scale", "divided by d") not in names
    assert ("no scale", "masked with zero") in names
    assert names[0][1] is None, "harmless ones come first"


def plain(q, k, v, mask=None, scale=None, fill=-math.inf):
    table = q @ k.mT * (q.shape[-1] ** -0.5 if scale is None else scale)
    if mask is not None:
        table = table.masked_fill(~mask, fill)
    return table.softmax(dim=-1) @ v


def test_a_mistake_beside_a_convention_has_its_name():
    patient = functools.partial(plain, scale=1.0, fill=-1e5)
    report = here(patient, kind="attention", layout="any", mask="keep")
    assert report.mistake is not None, report
    assert (report.mistake.name, report.mistake.also) == ("no scale", None)


def test_two_mistakes_are_named_as_two():
    patient = functools.partial(plain, scale=1.0, fill=0.0)
    report = here(patient, kind="attention", layout="any", mask="keep")
    named = report.mistake
    assert {named.name, named.also.name} == {"no scale", "masked with zero"}
    assert "no scale, and masked with zero" in str(report) or (
        "masked with zero, and no scale" in str(report)
    )


def test_other_formulas_have_words():
    def capped(q, k, v):
        table = 5 * torch.tanh(q @ k.mT / q.shape[-1] ** 0.5 / 5)
        return table.softmax(dim=-1) @ v

    def of_groups(q, k, v):
        k, v = (x.repeat_interleave(len(q[0]) // len(k[0]), 1) for x in (k, v))
        return plain(q, k, v)

    def causal_always(q, k, v):
        return attention(q, k, v, causal=True)

    def tokens_first(q, k, v, mask=None):
        q, k, v = (x.transpose(0, 1) for x in (q, k, v))
        mask = None if mask is None else mask[:, None, :]
        return plain(q, k, v, mask).transpose(0, 1)

    for patient, facts in (
        (capped, {"cap": 5.0}),
        (functools.partial(plain, scale=1.0), {"scale": 1.0}),
        (of_groups, {"layout": "BHND", "grouped": True}),
        (causal_always, {"causal": True}),
        (tokens_first, {"layout": "NBD", "mask_axes": "BN"}),
    ):
        report = here(patient, kind="attention", **facts)
        assert report.passed, report
    doubled = here(
        lambda q, k, v: 2 * capped(q, k, v), kind="attention", cap=5
    )
    assert doubled.exit_code == 1


class Lists(nn.Module):
    """A map a head, and a name for the last one that says nothing."""

    def __init__(self, order=(0, 1, 2)):
        super().__init__()
        self.q, self.k, self.v = (
            nn.ModuleList(nn.Linear(12, 4) for _ in range(3)) for _ in "qkv"
        )
        self.mix, self.order = nn.Linear(12, 12), order

    def forward(self, x):
        heads = []
        for i in range(3):
            of = self.q[i](x), self.k[i](x), self.v[i](x)
            q, k, v = (of[j] for j in self.order)
            heads.append(plain(q, k, v))
        return self.mix(torch.cat(heads, dim=-1))


def test_lists_of_maps_are_one_map_and_their_mistakes_have_names():
    told = {"kind": "self-attention", "n_heads": 3, "causal": False}
    assert here(Lists(), **told).passed
    wrong = here(Lists((1, 0, 2)), **told)
    assert wrong.mistake.name == "queries and keys exchanged"


class Fused(nn.Module):
    """Keys come first, as the name says."""

    def __init__(self):
        super().__init__()
        self.kqv, self.out = nn.Linear(12, 36), nn.Linear(12, 12)

    def forward(self, x):
        k, q, v = self.kqv(x).chunk(3, dim=-1)
        return self.out(plain(q, k, v))


def test_the_order_of_a_fused_matrix_is_read_off_its_name():
    told = {"kind": "self-attention", "n_heads": 1, "causal": False}
    assert here(Fused(), **told).passed
    assert not here(Fused(), order="vqk", **told).passed


def test_a_causal_edge_is_moved_by_a_deviation():
    past = attend(USUAL, *inputs(), causal=True)
    edge = Deviation({"past": lambda n, m: causal_mask(n, m)}, None)
    assert torch.equal(attend(edge.of(USUAL), *inputs(), causal=True), past)
    low = Deviation({"hide": without(-1.0)}, None)
    other = attend(low.of(USUAL), *inputs(), causal=True)
    assert not torch.allclose(other, past)
