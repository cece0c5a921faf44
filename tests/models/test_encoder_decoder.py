"""The encoder–decoder: its parts, its padding, its cache."""

from functools import partial

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from selfattn.blocks import DecoderBlock, EncoderBlock
from selfattn.layers import LayerNorm
from selfattn.masks import padding_mask
from selfattn.models import (
    Embedding,
    Encoder,
    EncoderDecoder,
    beam_search,
    complete,
)
from selfattn.multihead import MultiHeadAttention
from selfattn.positions import LearnedPositions, T5Bias, rope

BATCH, N_Q, N_K, D, HEADS, D_FF = 2, 7, 11, 12, 3, 17
LENGTHS = torch.tensor([11, 4])
MASK = padding_mask(LENGTHS, N_K)

KINDS = {
    "2017": {"pre": False},
    "pre": {"pre": True},
    "rotated": {
        "pre": True,
        "multihead": partial(MultiHeadAttention, n_kv_heads=1, rotate=rope),
    },
}
kinds = pytest.mark.parametrize("kind", KINDS)


def model_of(kind="pre", relative=None):
    options = KINDS[kind]
    told = Embedding(23, D, positions=LearnedPositions(N_K, D))
    asked = Embedding(19, D, positions=LearnedPositions(N_Q, D))
    model = EncoderDecoder(
        Encoder(told, [EncoderBlock(D, HEADS, D_FF, **options)]),
        asked,
        [DecoderBlock(D, HEADS, D_FF, **options) for _ in range(2)],
        norm=LayerNorm(D),
        relative=relative,
    )
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.3)
    return model.double()


def texts():
    return torch.randint(23, (BATCH, N_K)), torch.randint(19, (BATCH, N_Q))


def test_it_is_its_parts_one_after_another():
    model = model_of(relative=T5Bias(HEADS, causal=True))
    source, target = texts()
    seen = padding_mask(torch.tensor([3, 7]), N_Q)
    memory = model.encoder(source, mask=MASK)
    x, bias = model.embed(target), model.relative(N_Q, N_Q)[None]
    for block in model.blocks:
        x = block(x, memory, mask=seen, memory_mask=MASK, bias=bias)
    expected = model.norm(x) @ model.embed.tokens.weight.T
    logits = model(source, target, mask=MASK, target_mask=seen)
    assert_close(logits, expected)
    assert logits.shape == (BATCH, N_Q, 19)


@kinds
def test_token_by_token_is_all_at_once(kind, device):
    model = model_of(kind, T5Bias(HEADS)).to(device)
    source, target = (text.to(device) for text in texts())
    mask = MASK.to(device)
    memory = model.read(source, mask=mask)
    logits, cache = [], None
    for i in range(N_Q):
        one, cache = model.step(target[:, i : i + 1], cache, memory=memory)
        logits.append(one)
    whole = model(source, target, mask=mask)
    assert_close(torch.stack(logits, dim=1), whole)
    last, _ = model.step(target, memory=memory)
    assert_close(last, whole[:, -1])


@kinds
def test_padding_of_the_source_changes_no_bit(kind):
    model, (source, target) = model_of(kind), texts()
    before = model(source, target, mask=MASK)
    source[1, 4:] = 0
    assert torch.equal(model(source, target, mask=MASK), before)
    source[1, 3] = (source[1, 3] + 1) % 23
    after = model(source, target, mask=MASK)
    assert (after[1] != before[1]).any(dim=-1).all()


def test_the_future_of_the_target_changes_no_bit():
    model, (source, target) = model_of(), texts()
    before = model(source, target)
    target[:, 4:] = 0
    after = model(source, target)
    assert torch.equal(after[:, :4], before[:, :4])


def test_it_writes_the_same_with_and_without_a_cache():
    model, (source, _) = model_of(), texts()
    step = partial(model.step, memory=model.read(source, mask=MASK))
    begun = torch.tensor([[1], [1]])
    text = complete(step, begun, 6)
    assert torch.equal(complete(step, begun, 6, cached=False), text)
    logits = model(source, text[:, :-1], mask=MASK)
    assert torch.equal(logits.argmax(dim=-1), text[:, 1:])


@pytest.mark.parametrize("cached", [True, False])
def test_beams_of_a_text_all_look_at_its_source(cached):
    model, (source, _) = model_of(), texts()
    step = partial(model.step, memory=model.read(source, mask=MASK))
    found = beam_search(
        step, torch.tensor([[1], [1]]), 4, n_beams=3, cached=cached
    )
    for beam in found.tokens.unbind(1):
        logits = model(source, beam[:, :-1], mask=MASK).log_softmax(-1)
        scores = logits.gather(-1, beam[:, 1:, None]).sum((1, 2))
        assert (scores[:, None] - found.scores).abs().amin(1).max() < 1e-5


def test_rows_that_sources_cannot_share_evenly_are_refused():
    model, (source, _) = model_of(), texts()
    with pytest.raises(ValueError, match="of this batch"):
        model.step(torch.ones(3, 1).long(), memory=model.read(source))


def test_one_embedding_may_serve_source_target_and_scores():
    embed = Embedding(23, D)
    encoder = Encoder(embed, [EncoderBlock(D, HEADS, D_FF, pre=True)])
    blocks = [DecoderBlock(D, HEADS, D_FF, pre=True)]
    model = EncoderDecoder(encoder, embed, blocks)
    tables = [p for p in model.parameters() if p.shape == (23, D)]
    assert len(tables) == 1
    own = EncoderDecoder(encoder, embed, blocks, tied=False)
    assert own.head.weight is not embed.tokens.weight


def test_after_no_token_nothing_comes_next():
    model, (source, target) = model_of(), texts()
    memory = model.read(source)
    with pytest.raises(ValueError, match=r"at least 1 token.*\(2, 0\)"):
        model.step(target[:, :0], memory=memory)
