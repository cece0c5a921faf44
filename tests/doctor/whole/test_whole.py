"""Whole models: healthy ones, and what is planted into one."""

import functools

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from selfattn.blocks import DecoderBlock, EncoderBlock
from selfattn.doctor import examine
from selfattn.doctor.command.listing import listed
from selfattn.models import Decoder, Embedding, Encoder, EncoderDecoder
from selfattn.positions import LearnedPositions

here = functools.partial(examine, time_limit=None)
CACHE = ("cache not read", "positions start again", "other beams")


class Attention(nn.Module):
    """Two heads; what is wrong with them is told."""

    def __init__(self, wrong):
        super().__init__()
        self.map, self.out, self.wrong = (
            nn.Linear(8, 24),
            nn.Linear(8, 8),
            wrong,
        )

    def forward(self, x, seen, kept=None):
        q, k, v = self.map(x).unflatten(-1, (3, 2, 4)).permute(2, 0, 3, 1, 4)
        if kept is not None:
            k, v = torch.cat((kept[0], k), 2), torch.cat((kept[1], v), 2)
        if self.wrong == "texts meet":
            k = k + k.mean(0, keepdim=True)
        scores = (q @ k.mT / 2).masked_fill(~seen, -torch.inf)
        weights = scores.softmax(-1)
        if self.wrong == "never ends":
            weights = F.dropout(weights, 0.2)
        y = self.out((weights @ v).transpose(1, 2).flatten(2))
        return y.detach() if self.wrong == "detached" else y, (k, v)


class Model(nn.Module):
    """A small language model; what is wrong with it is told."""

    def __init__(self, wrong="", longest=16):
        super().__init__()
        torch.manual_seed(1)
        self.words, self.places = nn.Embedding(11, 8), nn.Embedding(longest, 8)
        self.layers = nn.ModuleList(Attention(wrong) for _ in range(2))
        self.norm, self.head = nn.LayerNorm(8), nn.Linear(8, 11, bias=False)
        self.rate, self.block_size = nn.Dropout(0.1), longest
        self.wrong, self.before, self.unused = wrong, 0.0, None
        if wrong != "tied by a copy":
            self.head.weight = self.words.weight
        else:
            self.head.weight = nn.Parameter(self.words.weight.detach().clone())
        if wrong == "unused":
            self.unused = nn.Linear(8, 8)
        if wrong == "short":
            self.places = nn.Embedding(longest - 3, 8)

    def seen(self, n, past, mask):
        shift = {"future": 99, "one ahead": 1}.get(self.wrong, 0)
        seen = torch.ones(n, past + n).bool().tril(past + shift)
        if self.wrong == "deaf":
            seen = torch.eye(n).bool()
        if mask is None or self.wrong == "padding":
            return seen
        own = torch.eye(n).bool()
        return (seen & mask[:, None, None, :].bool()) | own

    def located(self, n, past, mask):
        if self.wrong == "positions start again":
            past = 0
        places = torch.arange(past, past + n)
        if mask is not None and self.wrong != "moved":
            places = (mask.long().cumsum(-1) - 1).clamp(min=0)
        if self.wrong == "clamped":
            places = places.clamp(max=self.block_size - 1)
        return self.places(places)

    def forward(self, ids, mask=None, cache=None):
        past = 0 if cache is None else cache[0][0].shape[2]
        n = ids.shape[1]
        x = self.rate(self.words(ids) + self.located(n, past, mask))
        if self.wrong == "no dropout":
            x = self.words(ids) + self.located(n, past, mask)
        if self.wrong == "remembers":
            x, self.before = x + self.before, x.detach().mean()
        kept, seen = [], self.seen(n, past, mask)
        for i, layer in enumerate(self.layers):
            old = None if cache is None else cache[i]
            if self.wrong == "cache not read" and old is not None:
                old = tuple(0 * part - 1e9 for part in old)
            if self.wrong == "fading" and old is not None:
                old = tuple(part / 2 for part in old)
            y, new = layer(x, seen, old)
            x = x + (0 if self.wrong == "deaf" else y)
            kept.append(new)
        x = self.norm(x)
        if self.wrong == "half" and x.dtype != torch.float64:
            x = 1.5 * x
        return self.head(x), kept

    def reorder_cache(self, cache, rows):
        kept = [(k[rows], v[rows]) for k, v in cache]
        if self.wrong == "other beams":
            kept = [(k[rows], v) for k, v in cache]
        return kept


PLANTED = {
    "future": "not causal",
    "one ahead": "one token ahead",
    "deaf": "deaf",
    "texts meet": "texts meet",
    "padding": "padding is heard",
    "moved": "padding moves the text",
    "positions start again": "positions start again",
    "fading": "chunks tell another story",
    "other beams": "beams not reordered",
    "never ends": "dropout that never ends",
    "no dropout": "dropout that never begins",
    "remembers": "something is remembered",
    "detached": "cut from its loss",
    "unused": "cut from its loss",
    "tied by a copy": "tied by a copy",
    "short": "too short a reach",
    "half": "lost in half precision",
}


def test_a_small_model_is_healthy_and_its_attention_is_found():
    report = here(Model(), kind="language-model", left=True, tied=True)
    assert report.passed, report
    assert report.probes == 20 and not report.not_asked
    assert set(report.inside) == {"layers.0", "layers.1"}
    assert {*report.inside.values()} == {"healthy: it hears the past"}


@pytest.mark.parametrize("wrong", PLANTED)
def test_what_is_planted_is_found_and_named(wrong):
    known = {"left": True}
    report = here(Model(wrong), kind="language-model", **known)
    assert report.exit_code == 1, report
    assert report.mistake.name == PLANTED[wrong], report


def blocks(sort=EncoderBlock, n=2):
    return [sort(12, 3, 16, pre=True) for _ in range(n)]


def embedded():
    return Embedding(17, 12, positions=LearnedPositions(32, 12))


def test_the_models_of_the_book_are_healthy():
    torch.manual_seed(0)
    decoder = Decoder(embedded(), blocks(), norm=nn.LayerNorm(12))
    encoder = Encoder(embedded(), blocks())
    both = EncoderDecoder(encoder, embedded(), blocks(DecoderBlock, 1))
    for model, kind in (
        (decoder, "language-model"),
        (encoder, "encoder"),
        (both, "encoder-decoder"),
    ):
        report = here(model, kind=kind)
        assert report.passed, report
    found = report.inside
    assert found["blocks.0.cross"] == "healthy: it hears another text"


class Muted(EncoderDecoder):
    def forward(self, source, target, *, mask=None, target_mask=None):
        silent = torch.zeros_like(source)
        return super().forward(silent, target, target_mask=target_mask)


def test_an_encoder_that_is_causal_and_a_decoder_that_does_not_read():
    class Causal(Encoder):
        def forward(self, tokens, *, segments=None, mask=None):
            n = tokens.shape[1]
            return super().forward(tokens, mask=torch.ones(n, n).bool().tril())

    report = here(Causal(embedded(), blocks(n=1)), kind="encoder")
    assert report.mistake.name == "the past alone", report
    report = here(Encoder(Embedding(17, 12), blocks(n=1)), kind="encoder")
    assert report.mistake.name == "order does not tell", report
    encoder = Encoder(embedded(), blocks(n=1))
    model = Muted(encoder, embedded(), blocks(DecoderBlock, 1))
    report = here(model, kind="encoder-decoder")
    assert report.mistake.name == "source not read", report


class CausalSelfAttention(nn.Module):
    def __init__(self, wrong):
        super().__init__()
        self.n_heads, self.qkv, self.wrong = 2, nn.Linear(8, 24), wrong
        self.out = nn.Linear(8, 8)

    def forward(self, x):
        cut = (3, 2, 4)
        q, k, v = self.qkv(x).unflatten(-1, cut).permute(2, 0, 3, 1, 4)
        v = k if self.wrong == "keys are the values" else v
        scores = q @ k.mT * (1.0 if self.wrong == "no scale" else 0.5)
        later = 2 if self.wrong == "one ahead" else 1
        hidden = torch.ones(x.shape[1], x.shape[1]).triu(later).bool()
        weights = scores.masked_fill(hidden, -torch.inf).softmax(-1)
        return self.out((weights @ v).transpose(1, 2).flatten(2))


class Plain(nn.Module):
    def __init__(self, wrong=""):
        super().__init__()
        self.words, self.places = nn.Embedding(9, 8), nn.Embedding(32, 8)
        self.attention = CausalSelfAttention(wrong)
        self.head = nn.Linear(8, 9)

    def forward(self, ids):
        x = self.words(ids) + self.places(torch.arange(ids.shape[1]))
        return self.head(x + self.attention(x))


def test_attention_inside_that_only_its_own_kind_can_blame():
    """Nothing of that moves what one sees from outside."""
    torch.manual_seed(0)
    report = here(Plain("keys are the values"), kind="language-model")
    assert report.mistake.name == "keys are the values", report
    assert report.inside == {"attention": "ill: keys are the values"}
    assert report.exit_code == 1
    report = here(Plain("no scale"), kind="language-model")
    assert report.passed, report
    known = "different from the usual: no scale"
    assert report.inside == {"attention": known}
    assert here(Plain(), kind="language-model", inside=False).inside == {}


class Lengthy(Plain):
    """Who asks for its truth asks for its length."""

    def __len__(self):
        raise TypeError("Lengthy does not support len()")


def test_a_model_is_not_asked_whether_it_is_true():
    """What compiles a model has a length, and that of the model it asks."""
    for model in (Lengthy(), torch.compile(Plain(), backend="eager")):
        report = here(model, kind="language-model", inside=False)
        assert report.passed, report


def test_one_layer_alone_hears_one_token_ahead():
    torch.manual_seed(0)
    report = here(Plain("one ahead"), kind="language-model")
    assert report.mistake.name == "one token ahead", report


def test_what_cannot_be_asked_is_a_question():
    assert "module" in here(len, kind="encoder").question
    linear = here(nn.Linear(2, 2), kind="encoder")
    assert "n_tokens" in linear.question
    assert here(nn.Linear(2, 2), kind="encoder", n_tokens=5).exit_code == 2


def test_the_command_lists_them():
    assert "language-model: of token numbers" in listed(None)
    told = listed("encoder-decoder")
    assert "--n-tokens" in told and "source not read" in told
