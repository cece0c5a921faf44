"""What stands on an encoder, against loops."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from selfattn.masks import padding_mask
from selfattn.models import (
    ClassHead,
    Embedding,
    LabelHead,
    Pooler,
    SpanHead,
    WordHead,
    best_span,
)

BATCH, N, D = 3, 7, 5


def encoded():
    return torch.randn(BATCH, N, D)


def test_a_class_is_read_from_the_first_token_alone():
    head, x = ClassHead(D, 11), encoded()
    pooled = torch.tanh(
        x[:, 0] @ head.pooler.dense.weight.T + head.pooler.dense.bias
    )
    assert_close(head.pooler(x), pooled)
    assert_close(head(x), head.classes(pooled))
    changed = x.clone()
    changed[:, 1:] = 9.0
    assert torch.equal(head(changed), head(x))
    assert Pooler(D)(x).abs().max() < 1


def test_a_label_is_read_from_each_token_alone():
    head, x = LabelHead(D, 11), encoded()
    for i in range(N):
        assert_close(head(x)[:, i], head.labels(x[:, i]))


def test_heads_drop_in_training_alone():
    for head in (ClassHead(D, 2, dropout=1.0), LabelHead(D, 2, dropout=1.0)):
        last = getattr(head, "classes", None) or head.labels
        x = encoded()
        assert (head(x) == last.bias).all()
        assert (head.eval()(x) != last.bias).all()


def test_a_span_has_two_scores_a_token_and_none_in_the_padding():
    head, x = SpanHead(D), encoded()
    start, end = head(x)
    assert_close(torch.stack((start, end), dim=-1), head.ends(x))
    mask = padding_mask(torch.tensor([7, 2, 4]), N)
    inside = mask[:, 0, 0]
    for masked, free in zip(head(x, mask=mask), (start, end), strict=True):
        assert torch.equal(masked[inside], free[inside])
        assert (masked[~inside] == -torch.inf).all()
    first, last = best_span(*head(x, mask=mask)).unbind(dim=-1)
    assert (last < torch.tensor([7, 2, 4])).all()
    assert (first <= last).all()


@pytest.mark.parametrize("longest", [None, 1, 3, 100])
def test_the_best_span_is_the_one_a_loop_finds(longest):
    start, end = torch.randn(2, 50, N)
    found = best_span(start, end, longest=longest)
    for b in range(50):
        spans = [
            (i, j)
            for i in range(N)
            for j in range(i, N)
            if longest is None or j - i < longest
        ]
        best = max(spans, key=lambda s: (start[b, s[0]] + end[b, s[1]]).item())
        assert tuple(found[b].tolist()) == best


def test_a_span_of_nothing_is_refused():
    with pytest.raises(ValueError, match="at least 1 token, but longest=0"):
        best_span(torch.zeros(1, N), torch.zeros(1, N), longest=0)


def test_words_are_scored_with_the_table_of_the_embedding():
    embed = Embedding(11, D)
    nn.init.normal_(embed.tokens.weight)
    head = WordHead(embed)
    nn.init.normal_(head.words.bias)
    x = encoded()
    bent = nn.functional.gelu(head.dense(x))
    normal = nn.functional.layer_norm(bent, (D,), eps=1e-12)
    expected = normal @ embed.tokens.weight.T + head.words.bias
    assert_close(head(x), expected)
    assert head.words.weight is embed.tokens.weight
