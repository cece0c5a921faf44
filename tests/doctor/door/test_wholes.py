"""A whole model at the door is known by what it makes of token numbers."""

import pytest
import torch
from torch import nn
from transformers import (
    BertConfig,
    BertModel,
    GPT2Config,
    GPT2LMHeadModel,
    T5Config,
    T5ForConditionalGeneration,
)

from selfattn.blocks import DecoderBlock, EncoderBlock
from selfattn.doctor.door.guessing import guess
from selfattn.models import Decoder, Embedding, Encoder, EncoderDecoder
from selfattn.positions import LearnedPositions


class Net(nn.Module):
    """One layer of heads over texts, with or without a mask."""

    def __init__(self, vocab_size, d_model, n_heads, max_len=32):
        super().__init__()
        self.words = nn.Embedding(vocab_size, d_model)
        self.places = nn.Embedding(max_len, d_model)
        self.heads = nn.MultiheadAttention(d_model, n_heads, batch_first=True)
        self.out = nn.Linear(d_model, vocab_size)

    causal = True

    def forward(self, ids):
        n = ids.shape[1]
        x = self.words(ids) + self.places(torch.arange(n))
        hidden = torch.ones(n, n).triu(1).bool() if self.causal else None
        return self.out(x + self.heads(x, x, x, attn_mask=hidden)[0])


class TinyGPT(Net):
    causal = False


class Tagger(Net):
    causal = False


class Table(Net):
    def forward(self, ids):
        return self.words(ids) + self.places(torch.arange(ids.shape[1]))


class Other(Net):
    def forward(self, source, written):
        return (
            super().forward(written)
            + self.words(source).sum((1, 2))[:, None, None]
        )


@pytest.mark.parametrize(
    ("thing", "kinds"),
    [
        (Net, ["language-model"]),
        (TinyGPT, ["language-model", "encoder"]),
        (Tagger, ["encoder"]),
        (Other, ["encoder-decoder"]),
    ],
)
def test_a_class_is_made_and_known(thing, kinds):
    torch.manual_seed(0)
    found = guess(thing, thing.__name__)
    assert [found.kind, *found.others] == kinds, found


class Writer(Net):
    """It gives the last token's scores, unless it is told what came next."""

    def forward(self, ids, targets=None):
        scores = super().forward(ids)
        if targets is None:
            return scores[:, [-1]], None
        loss = nn.functional.cross_entropy(scores.mT, targets)
        return scores, loss


class Sorter(Net):
    """It gives a text's scores, and learns from its label."""

    def forward(self, ids, labels=None):
        scores = super().forward(ids).mean(1)
        if labels is None:
            return scores
        return scores, nn.functional.cross_entropy(scores, labels)


def test_who_gives_the_last_token_alone_is_a_language_model():
    """It looked like nothing."""
    torch.manual_seed(0)
    assert guess(Writer, "Writer").kind == "language-model"
    assert "model" not in guess(Sorter, "Sorter").kind


def test_a_table_of_words_is_no_model():
    assert "model" not in guess(Table, "Table").kind


def test_models_of_the_book_and_of_transformers():
    torch.manual_seed(0)
    table = [
        Embedding(17, 12, positions=LearnedPositions(32, 12)) for _ in "12"
    ]
    encoder = Encoder(table[0], [EncoderBlock(12, 3, 16, pre=True)])
    size = {"d_model": 12, "d_kv": 4, "d_ff": 16, "num_layers": 1}
    small = {"hidden_size": 12, "num_attention_heads": 3, "vocab_size": 17}
    small |= {"num_hidden_layers": 1, "intermediate_size": 16}
    for model, kind in (
        (
            Decoder(table[0], [EncoderBlock(12, 3, 16, pre=True)]),
            "language-model",
        ),
        (encoder, "encoder"),
        (
            EncoderDecoder(
                encoder, table[1], [DecoderBlock(12, 3, 16, pre=True)]
            ),
            "encoder-decoder",
        ),
        (
            GPT2LMHeadModel(GPT2Config(n_embd=12, n_head=3, n_layer=1)),
            "language-model",
        ),
        (BertModel(BertConfig(**small)), "encoder"),
        (
            T5ForConditionalGeneration(T5Config(**size, num_heads=3)),
            "encoder-decoder",
        ),
    ):
        assert guess(model, "mine").kind == kind, type(model)
