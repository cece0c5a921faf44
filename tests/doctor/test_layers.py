"""The kinds `self-attention` and `cross-attention`: modules of all sorts."""

import copy

import pytest
import torch
from torch import nn

from selfattn import MultiHeadAttention, attention, fused_attention
from selfattn.doctor import examine, refilled
from selfattn.doctor.kinds.layer.mistakes.masks import rolled_too_early
from selfattn.doctor.kinds.layer.parts import projections
from selfattn.doctor.kinds.layer.reference import Masks
from selfattn.doctor.kinds.layer.reference import layer as reference
from selfattn.doctor.kinds.layer.self_attention.kind import windows
from selfattn.doctor.kinds.layer.words import part_called
from selfattn.doctor.self_test import banks
from selfattn.positions import rope


def here(thing, kind="self-attention", **facts):
    return examine(thing, kind=kind, time_limit=None, **facts)


class ByHand(nn.Module):
    """As it is written in many courses: causal, on one matrix for each."""

    def __init__(self, d_in, d_out, context_length, num_heads, dropout=0.0):
        super().__init__()
        self.num_heads = num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        future = torch.ones(context_length, context_length).triu(1)
        self.register_buffer("mask", future.bool())

    def heads(self, x):
        matrices = (self.W_query, self.W_key, self.W_value)
        cut = (self.num_heads, -1)
        return [W(x).unflatten(-1, cut).transpose(1, 2) for W in matrices]

    def weights(self, q, k):
        n = q.shape[-2]
        scores = (q @ k.mT).masked_fill(self.mask[:n, :n], -torch.inf)
        return self.dropout((scores / k.shape[-1] ** 0.5).softmax(-1))

    def forward(self, x):
        q, k, v = self.heads(x)
        output = self.weights(q, k) @ v
        return self.out_proj(output.transpose(1, 2).flatten(-2))


class Unscaled(ByHand):
    def weights(self, q, k):
        n = q.shape[-2]
        scores = (q @ k.mT).masked_fill(self.mask[:n, :n], -torch.inf)
        return scores.softmax(-1)


class Leaky(ByHand):
    def weights(self, q, k):
        n = q.shape[-2]
        weights = (q @ k.mT / k.shape[-1] ** 0.5).softmax(-1)
        return weights.masked_fill(self.mask[:n, :n], 0.0)


class Mixed(ByHand):
    def forward(self, x):
        q, k, v = self.heads(x)
        output = self.weights(q, k) @ v
        return self.out_proj(output.reshape(x.shape))


class Noisy(ByHand):
    def weights(self, q, k):
        return nn.functional.dropout(super().weights(q, k), 0.1)


class Strict(ByHand):
    """Its mask is tril(diagonal=-1): a token may not look at itself."""

    fill = -1e9

    def weights(self, q, k):
        n = q.shape[-2]
        before = torch.ones(n, n).tril(diagonal=-1) == 1
        scores = q @ k.mT / k.shape[-1] ** 0.5
        return scores.masked_fill(~before, self.fill).softmax(-1)


class StrictAndInfinite(Strict):
    fill = -torch.inf


class TokensFirst(nn.MultiheadAttention):
    def __init__(self, embed_dim, num_heads):
        super().__init__(embed_dim, num_heads)  # and batch_first forgotten

    def forward(self, x):
        return super().forward(x, x, x, need_weights=False)[0]


SELF = [
    (nn.MultiheadAttention(12, 3), {"layout": "NBD", "padding": "block"}),
    (nn.MultiheadAttention(12, 3, batch_first=True), {"layout": "BND"}),
    (MultiHeadAttention(12, 3), {"layout": "BND", "causal": False}),
    (
        MultiHeadAttention(
            12, 6, n_kv_heads=2, projection_bias=True, attend=fused_attention
        ),
        {"mask": "keep", "mask_axes": "B1NN"},
    ),
    (ByHand, {"layout": "BND", "causal": True}),
    (ByHand(12, 12, 64, 4), {"causal": True}),
]


@pytest.mark.parametrize(
    ("layer", "found"), SELF, ids=[str(i) for i in range(len(SELF))]
)
def test_healthy_layers_are_healthy_and_read_right(layer, found):
    report = here(layer)
    assert report.passed, report
    assert found.items() <= report.facts.items()
    assert "its numbers" not in report.not_asked


@pytest.mark.parametrize("batch_first", [False, True])
def test_pytorchs_layer_is_healthy_across_two_sequences(batch_first):
    layer = nn.MultiheadAttention(12, 3, batch_first=batch_first)
    report = here(layer, "cross-attention")
    assert report.passed, report
    assert [m.name for m in report.remarks] == ["empty row gives nan"]


def test_ours_is_healthy_across_two_sequences_of_two_widths():
    layer = MultiHeadAttention(12, 3, d_context=8)
    report = here(layer, "cross-attention")
    assert report.passed, report
    assert "a text of another length" not in report.not_asked


def test_pytorchs_layer_with_a_causal_mask_of_the_callers():
    class Causal(nn.MultiheadAttention):
        def __init__(self, embed_dim, num_heads):
            super().__init__(embed_dim, num_heads, batch_first=True)

        def forward(self, x):
            n = x.shape[1]
            future = torch.ones(n, n, dtype=torch.bool).triu(1)
            return super().forward(x, x, x, attn_mask=future)

    report = here(Causal)
    assert report.passed and report.facts["causal"] is True


ILL = [
    (Unscaled, {}, "no scale"),
    (Leaky, {}, "mask after softmax"),
    (Mixed, {}, "merged without transpose"),
    (Noisy, {}, "dropout that never ends"),
    (Strict, {"causal": True}, "not itself and the first averages"),
    (StrictAndInfinite, {}, "not itself and the first is nan"),
    (
        Strict,
        {"causal": True, "formula": "own"},
        "not itself and the first averages",
    ),
    (TokensFirst, {"layout": "BND"}, "batch and tokens exchanged"),
    (MultiHeadAttention(12, 3), {"causal": True}, "not causal"),
    (
        nn.MultiheadAttention(12, 3),
        {"mask": "keep", "padding": "keep"},
        "mask upside down",
    ),
]


@pytest.mark.parametrize(
    ("layer", "facts", "name"),
    ILL,
    ids=[f"{name} {', '.join(facts)}" for _, facts, name in ILL],
)
def test_ill_layers_have_the_name_of_their_mistake(layer, facts, name):
    report = here(layer, **facts)
    assert report.mistake is not None, report
    assert report.mistake.name == name


def test_a_formula_of_its_own_is_asked_for_properties_alone():
    turned = MultiHeadAttention(12, 3, rotate=rope)
    report = here(turned)
    assert report.passed and report.facts["formula"] == "own"
    assert "its numbers" not in report.not_asked

    def moved(x, offset=0):
        return x + torch.arange(x.shape[-2])[:, None].sin() / 4

    report = here(MultiHeadAttention(12, 3, rotate=moved))
    assert report.passed and report.facts["formula"] == "own"
    assert "its numbers" in report.not_asked


def test_what_has_no_projections_that_one_knows_is_asked_for_properties():
    class Strange(nn.Module):
        def __init__(self, dim):
            super().__init__()
            self.mixer = nn.Linear(dim, dim)

        def forward(self, x):
            y = self.mixer(x)
            return attention(y, y, y, causal=True)

    report = here(Strange)
    assert report.passed, report
    assert report.not_asked["its numbers"] == (
        "its projections are not recognised"
    )
    assert report.facts["causal"] is True
    assert here(Strange, causal=False).passed is False


def test_a_layer_that_needs_more_is_asked_about():
    class Needy(ByHand):
        def forward(self, x, positions):
            return super().forward(x) + positions

    asked = here(Needy)
    assert asked.exit_code == 2
    assert "Say call={'positions': …}" in asked.question

    class Odd(nn.Module):
        def __init__(self, whatever):
            super().__init__()

    assert "Say make={'whatever': …}" in here(Odd).question
    assert "its kind is “attention”" in here(attention).question


def test_the_layer_that_was_handed_over_stays_as_it_was():
    layer = MultiHeadAttention(12, 3).train()
    before = copy.deepcopy(layer.state_dict())
    here(layer)
    assert layer.training
    after = layer.state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_the_reference_is_pytorchs_layer_in_float64():
    layer = refilled(nn.MultiheadAttention(12, 3, batch_first=True)).double()
    parts = projections(layer, 3, "by part", {})
    x, context = torch.randn(2, 7, 12).double(), torch.randn(2, 5, 12).double()
    real = torch.ones(2, 5, dtype=torch.bool)
    real[0, 3:] = False
    ours, weights = reference(parts, x, context, Masks(None, real))
    theirs, mean = layer(x, context, context, key_padding_mask=~real)
    assert torch.allclose(ours, theirs, atol=1e-12)  # rounding of doubles
    assert torch.allclose(weights.mean(1), mean, atol=1e-12)


def test_a_matrix_for_all_three_may_go_by_heads():
    class ByHeads(nn.Module):
        def __init__(self, hidden_size, num_heads):
            super().__init__()
            self.num_heads = num_heads
            self.query_key_value = nn.Linear(hidden_size, 3 * hidden_size)
            self.dense = nn.Linear(hidden_size, hidden_size)

        def forward(self, hidden_states):
            cut = self.query_key_value(hidden_states).unflatten(
                -1, (self.num_heads, 3, -1)
            )
            q, k, v = cut.permute(3, 0, 2, 1, 4)
            return self.dense(attention(q, k, v).transpose(1, 2).flatten(-2))

    report = here(ByHeads)
    assert report.passed and report.facts["packed"] == "by head"


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("W_q", "q"),
        ("q_proj", "q"),
        ("to_k", "k"),
        ("key", "k"),
        ("v_lin", "v"),
        ("c_attn", "qkv"),
        ("in_proj_weight", "qkv"),
        ("Wqkv", "qkv"),
        ("c_proj", "out"),
        ("o_proj", "out"),
        ("to_kv", "kv"),
        ("norm", None),
    ],
)
def test_parts_are_known_by_many_names(name, part):
    assert part_called(name) == part


def test_the_bank_is_tried_on_layers_with_biases():
    """Without, a mistake that leaves them out would be none."""
    names = {m.name for m in banks()["self-attention"].mistakes}
    assert {"biases forgotten", "no scale", "padding ignored"} <= names


def pairs(n_q, n_k):
    """Each token sees itself and its neighbour."""
    pair = torch.arange(n_k) // 2
    return pair[n_k - n_q :, None] == pair


class InPairs(MultiHeadAttention):
    def __init__(self, mask):
        super().__init__(12, 3)
        self.hide = mask

    def forward(self, x):
        return super().forward(x, mask=self.hide(x.shape[-2], x.shape[-2]))


@pytest.mark.parametrize("formula", ["plain", "own"])
def test_a_mask_that_a_layer_keeps_by_itself_can_be_claimed(formula):
    facts = {"table": pairs, "causal": False, "formula": formula}
    assert here(InPairs(pairs), **facts).passed
    report = here(MultiHeadAttention(12, 3), **facts, takes=[])
    assert report.mistake is not None
    assert report.mistake.name == "claim not kept"
    early = here(
        InPairs(rolled_too_early(windows)), **{**facts, "table": windows}
    )
    assert early.mistake is not None, early
    assert early.mistake.name == "rolled before it is padded"


class Normed(nn.Module):
    """A formula of its own; its values are made by another's map."""

    def __init__(self):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(8, 8) for _ in "qkv")
        self.norm = nn.LayerNorm(8)

    def forward(self, x):
        q, k = self.norm(self.q(x)), self.norm(self.k(x))
        return (q @ k.mT).softmax(dim=-1) @ self.k(x)


def test_a_map_that_moves_nothing_is_said_to_be_unused_and_no_more():
    """What stands in its place cannot be told, and it was called the input."""
    told = {"formula": "own", "causal": False, "n_heads": 1}
    report = examine(Normed(), kind="self-attention", time_limit=None, **told)
    assert report.mistake.name == "projection not used"


class Padded(nn.Module):
    """Padded keys are hidden by this number."""

    def __init__(self, low):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(8, 8) for _ in "qkv")
        self.low = low

    def forward(self, x, key_padding_mask=None):
        scores = self.q(x) @ self.k(x).mT / 8**0.5
        if key_padding_mask is not None:
            scores = scores.masked_fill(key_padding_mask[:, None], self.low)
        return scores.softmax(dim=-1) @ self.v(x)


def test_a_text_of_padding_becomes_what_was_told():
    """Nothing was asked of one whose only mask is that for padding."""
    told = {
        "kind": "self-attention",
        "n_heads": 1,
        "padding": "block",
        "empty_row": "nan",
        "time_limit": None,
    }
    assert examine(Padded(-torch.inf), **told).passed
    report = examine(Padded(-1e9), **told)
    assert report.mistake.name == "empty row gives the average"
