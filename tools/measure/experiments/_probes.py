"""What linear probes read out of each layer of a model of tales."""

import itertools
from collections.abc import Iterator

import torch
from torch import Tensor

from selfattn.data.tales import (
    KINDS,
    NOUNS,
    PLACES,
    WORDS,
    Tales,
    tale_batches,
)
from selfattn.looking_inside import Probe
from selfattn.models import Decoder

TESTS, TEST_BATCHES = 100, 4  # texts, of each kind
FITTED = 8  # batches that a probe is fitted on

Texts = dict[str, list[Tales]]


def texts(seed: int, batches: int = TEST_BATCHES) -> Texts:
    """Tales of each kind that nobody was trained on."""
    return {
        kind: list(
            itertools.islice(
                tale_batches(TESTS, seed=10_000 + seed, kind=kind), batches
            )
        )
        for kind in KINDS
    }


def stream(model: Decoder, tokens: Tensor) -> list[Tensor]:
    """What each layer hands on, the embedding first."""
    x = model.embed(tokens)
    layers = [x]
    for block in model.blocks:
        x = block(x, causal=True)
        layers.append(x)
    return layers


def questions(
    tests: Texts, seed: int
) -> Iterator[tuple[str, list[tuple[Tales, Tensor, Tensor]]]]:
    """What to read where: (name, [(tales, positions, labels)])."""
    dice = torch.Generator().manual_seed(seed)
    bit = torch.randint(2, (len(WORDS),), generator=dice)
    echo = [(t, torch.arange(1, t.tokens.shape[1])) for t in tests["echo"]]
    yield "position", [(t, i, i.expand(len(t.tokens), -1)) for t, i in echo]
    yield "previous word", [(t, i, t.tokens[:, i - 1]) for t, i in echo]
    long = [t for t in tests["agreement"] if t.tokens.shape[1] > 6]
    subject = [(t, t.asked, t.tokens.gather(1, t.where)) for t in long]
    many = torch.tensor([word in NOUNS[1] for word in WORDS]).long()
    yield "number", [(t, i, many[word]) for t, i, word in subject]
    yield "number, control", [(t, i, bit[word]) for t, i, word in subject]
    who = [
        (t, t.asked, t.tokens.gather(1, t.where)) for t in tests["coreference"]
    ]
    place = torch.tensor([word in PLACES for word in WORDS]).long()
    yield "who", who
    yield "kind", [(t, i, place[word]) for t, i, word in who]
    yield "kind, control", [(t, i, bit[word]) for t, i, word in who]


def probes(model: Decoder, seed: int) -> dict[str, float]:
    """What a linear probe reads out of each layer, of texts new to it."""
    fit = dict(questions(texts(50_000 + seed, FITTED), seed))
    test = dict(questions(texts(seed), seed))
    found = {}
    for name in fit:
        (x, labels), (new, truth) = (
            gathered(model, part[name]) for part in (fit, test)
        )
        for layer, (old, other) in enumerate(zip(x, new, strict=True)):
            right = Probe(old, labels).right(other, truth)
            found[f"{name} at {layer}"] = right
    return found


def gathered(
    model: Decoder, asked: list[tuple[Tales, Tensor, Tensor]]
) -> tuple[list[Tensor], Tensor]:
    """Representations by layer, (n, d), and their labels, (n,)."""
    layers: list[list[Tensor]] = []
    for tale, positions, _ in asked:
        layers.append(
            [x[:, positions].flatten(0, 1) for x in stream(model, tale.tokens)]
        )
    labels = torch.cat([label.flatten() for _, _, label in asked])
    return [torch.cat(x) for x in zip(*layers, strict=True)], labels
