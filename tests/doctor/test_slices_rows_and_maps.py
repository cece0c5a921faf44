"""Mechanisms and rotations that save in other ways than the doctor knew.

Of queries and keys with a feature map each it had no word; who did a few
heads at a time was told that he makes the whole table; and tokens of all
texts in one row were called with a batch.
"""

import functools

import pytest
import torch
from torch import nn

from selfattn import MultiHeadAttention, attention
from selfattn.doctor import examine
from selfattn.positions import sinusoidal

mechanism = functools.partial(examine, kind="efficient", time_limit=None)
rotation = functools.partial(examine, kind="rope", time_limit=None)


def over_features(x):
    return x.softmax(dim=-1)


def over_tokens(x):
    return x.softmax(dim=-2)


def by_contexts(q, k, v, over=-1):
    """Channels come before pixels; each channel shares out all pixels."""
    context = k.softmax(dim=over) @ v.mT
    return (q.softmax(dim=-2).mT @ context).mT


def relu_of_keys(q, k, v):
    q, k = over_features(q), torch.relu(k) + 1
    return q @ (k.mT @ v) / (q @ k.sum(-2)[..., None])


TOLD = {"kernel": over_features, "key_kernel": over_tokens}


@pytest.mark.parametrize("told", [{}, {"layout": "BHDN", **TOLD}])
def test_keys_may_have_a_feature_map_of_their_own(told):
    report = mechanism(by_contexts, **told)
    assert report.passed, report


def test_another_map_of_keys_can_be_told_and_is_asked():
    of_keys = {"key_kernel": lambda x: torch.relu(x) + 1}
    told = {"layout": "any", "kernel": over_features}
    assert mechanism(relu_of_keys, **told, **of_keys).passed
    assert mechanism(relu_of_keys, **told).exit_code == 1


def test_a_wrong_map_of_keys_is_no_claim_kept():
    wrong = functools.partial(by_contexts, over=-2)
    report = mechanism(wrong, layout="BHDN", **TOLD)
    assert report.exit_code == 1, report
    assert not mechanism(wrong).passed


def test_who_leaves_out_the_map_of_keys_is_asked_after_it():
    report = mechanism(by_contexts, layout="BHDN", kernel=over_features)
    assert "key_kernel=…" in report.different
    report = mechanism(by_contexts, layout="BHDN", key_kernel=over_tokens)
    assert "kernel=…" in report.question


def a_few_heads_at_a_time(q, k, v, few=2, kept=False):
    """Of (batch of heads, tokens, features) a few at a time, or all."""
    few = len(q) if kept else few
    made = []
    for some in zip(*(x.split(few) for x in (q, k, v)), strict=True):
        a, b, c = some
        scores = a @ b.mT * a.shape[-1] ** -0.5
        made.append(scores.softmax(dim=-1) @ c)
    return torch.cat(made)


def head_by_head(q, k, v):
    """Of (batch, heads, tokens, features) one head after the other."""
    made = [
        (q[:, h] @ k[:, h].mT * q.shape[-1] ** -0.5).softmax(-1) @ v[:, h]
        for h in range(q.shape[1])
    ]
    return torch.stack(made, dim=1)


@pytest.mark.parametrize("told", [{}, {"layout": "BND"}])
def test_who_does_a_few_heads_at_a_time_makes_no_table_of_all(told):
    report = mechanism(a_few_heads_at_a_time, **told)
    assert report.passed, report
    whole = functools.partial(a_few_heads_at_a_time, kept=True)
    report = mechanism(whole, **told)
    assert report.mistake.name == "the whole table is made"


def test_and_so_does_who_loops_over_heads_with_an_axis_of_their_own():
    report = mechanism(head_by_head, layout="BHND")
    assert report.passed, report


class OneRow(nn.Module):
    """A table of angles; x is (tokens, heads, 8), or has two axes."""

    def __init__(self, part=8, forgets=False):
        super().__init__()
        self.part, self.forgets = part, forgets
        rate = 10000.0 ** (-torch.arange(0, part, 2).double() / part)
        angle = torch.arange(128)[:, None] * rate
        table = torch.cat((angle.cos(), angle.sin()), dim=-1)
        self.register_buffer("table", table)

    def forward(self, positions, query):
        if self.forgets:
            positions = torch.arange(len(positions))
        heads = query.reshape(len(positions), -1, 8)
        turned, kept = heads[..., : self.part], heads[..., self.part :]
        rows = self.table[positions].to(query.dtype)[:, None]
        cos, sin = rows.chunk(2, dim=-1)
        a, b = turned.chunk(2, dim=-1)
        turned = torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1)
        return torch.cat((turned, kept), dim=-1).view(query.shape)


@pytest.mark.parametrize(
    "told", [{}, {"layout": "NHD", "pairs": "halves"}, {"told": "positions"}]
)
def test_tokens_of_all_texts_may_stand_in_one_row(told):
    if "told" in told:
        told = {**told, "name": "positions"}
    report = rotation(OneRow(), **told)
    assert report.passed, report
    assert "so is each head" not in str(report.not_asked)


@pytest.mark.parametrize("told", [{}, {"layout": "NHD", "pairs": "halves"}])
def test_a_row_that_forgets_where_it_starts_is_named(told):
    report = rotation(OneRow(forgets=True), **told)
    found = report.mistake or report.likeness
    assert found.name == "offset ignored", report


def test_a_part_of_a_row_is_asked_after_whatever_its_number_type():
    module = OneRow(part=4)
    module.table = module.table.float()
    report = rotation(module)
    assert "part=0.5" in report.different
    assert report.mistake.name == "only half of the features"


def along_the_first(x, offset=0):
    """Of any number of axes the first is time; nobody tells it positions."""
    d = x.shape[-1]
    rate = 10000.0 ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)
    where = torch.arange(offset, offset + len(x))
    angle = where.view(-1, *[1] * (x.ndim - 1)) * rate
    a, b = x[..., ::2], x[..., 1::2]
    cos, sin = angle.cos().to(x), angle.sin().to(x)
    return torch.stack((a * cos - b * sin, b * cos + a * sin), -1).flatten(-2)


def along_texts(x):
    _, _, _ = x.shape
    return along_the_first(x)


@pytest.mark.parametrize("rotate", [along_the_first, along_texts])
def test_who_counts_texts_has_no_row_of_tokens(rotate):
    """What it does with two and four axes was left out, and it passed."""
    report = rotation(rotate)
    assert report.mistake.name == "first axis is time", report
    assert rotation(rotate, layout="NHD").passed


class Empty(nn.Sequential):
    """A map of features that holds no part, and has a length of nothing."""

    def __init__(self, over):
        super().__init__()
        self.over = over

    def __len__(self):
        return 0

    def forward(self, *given):
        return self.over(*given)


def test_a_map_of_features_may_be_a_module_without_parts():
    """It was taken for none."""
    told = {"kernel": Empty(over_features), "key_kernel": Empty(over_tokens)}
    report = mechanism(by_contexts, layout="BHDN", **told)
    assert report.passed, report


def from_a_start(start, x):
    if not isinstance(start, list):
        raise TypeError("a list of one number")
    return along_the_first(x.movedim(-2, 0), int(start[0])).movedim(0, -2)


def test_so_may_be_what_calls_a_rotation_or_a_table():
    call = Empty(lambda thing, x, offset: thing([offset], x))
    assert rotation(from_a_start, call=call, layout="BHND").passed

    def waves(words, d):
        if not isinstance(words, list):
            raise TypeError("a list of words")
        return sinusoidal(len(words), d)

    call = Empty(lambda thing, n, d: thing(n * [""], d))
    report = examine(waves, kind="sinusoidal", call=call, time_limit=None)
    assert report.passed, report


class InPairs(MultiHeadAttention):
    def forward(self, x):
        return super().forward(x, mask=pairs(x.shape[-2], x.shape[-2]))


def pairs(n_q, n_k):
    """Two tokens at a time look at each other."""
    return torch.arange(n_q)[:, None] // 2 == torch.arange(n_k) // 2


def test_so_may_be_the_mask_that_a_layer_keeps():
    layer = InPairs(12, 3)
    told = {"table": Empty(pairs), "causal": False}
    report = examine(layer, kind="self-attention", time_limit=None, **told)
    assert report.passed, report


def past_pairs(n_q, n_k):
    past = torch.ones(n_q, n_k).bool().tril(n_k - n_q)
    return past & (torch.arange(n_k) % 2 == 0)


def test_and_the_mask_that_a_mechanism_keeps():
    def kept(q, k, v):
        return attention(q, k, v, mask=past_pairs(q.shape[-2], k.shape[-2]))

    reports = [
        mechanism(kept, layout="any", table=table)
        for table in (past_pairs, Empty(past_pairs))
    ]
    assert str(reports[1]) == str(reports[0])
