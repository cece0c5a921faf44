"""A small language, letter by letter, of which all is known.

Its sentences are drawn from a grammar in which every choice is free, so that
one can say how well it can be foretold: no model's loss can stay below the
language's own entropy, and a good one comes near.
"""

import itertools
import math
from collections.abc import Iterator

import torch
from jaxtyping import Int
from torch import Tensor

from selfattn.data.drawing import on_the_cpu
from selfattn.data.numbering import numbers, said
from selfattn.signatures import Positive, Seed, checked

ARTICLES = ("the", "a")
ADJECTIVES = ("", "old", "small", "grey")  # the first: none
NOUNS = ("cat", "dog", "bird", "mouse", "fox", "horse", "fish", "owl")
VERBS = ("sees", "hears", "follows", "likes")
SLOTS = (ARTICLES, ADJECTIVES, NOUNS, VERBS, ARTICLES, ADJECTIVES, NOUNS)
CHARACTERS = "".join(sorted({*"".join(itertools.chain(*SLOTS)), *" ."}))


@checked
def encode(text: str) -> Int[Tensor, " n"]:
    """The number of each character.

    Raises:
        ValueError: if a character is none of the language.

    >>> decode(encode("the cat sees a dog. "))
    'the cat sees a dog. '
    """
    if unknown := set(text) - set(CHARACTERS):
        raise ValueError(
            f"the language has no other characters than {CHARACTERS!r}, "
            f"but {text!r} has {sorted(unknown)}"
        )
    return numbers([CHARACTERS.index(x) for x in text])


@checked
def decode(tokens: Int[Tensor, " n"]) -> str:
    """The text."""
    return "".join(said(tokens, CHARACTERS))


def nats_per_character() -> float:
    """The entropy: the least loss, on average over an endless text.

    Every choice of a sentence is drawn evenly, and can be read off the text;
    so its entropy is the sum of theirs. It is spread over its characters.

    >>> round(nats_per_character(), 4)
    0.3208
    """
    nats = sum(math.log(len(words)) for words in SLOTS)
    # A word brings a space, the last a full stop and a space.
    characters = 1 + sum(
        sum(len(word) + (word != "") for word in words) / len(words)
        for words in SLOTS
    )
    return nats / characters


def sentences(generator: torch.Generator) -> Iterator[str]:
    """Sentences without end, each with a space behind it."""
    chance = {"generator": generator, "device": generator.device}
    while True:
        words = [
            words[int(torch.randint(len(words), (1,), **chance))]
            for words in SLOTS
        ]
        yield " ".join(word for word in words if word) + ". "


@checked
@on_the_cpu
def character_batches(
    size: Positive, *, n: int, seed: Seed
) -> Iterator[Int[Tensor, "batch n"]]:
    """Batches without end, always the same ones for a seed.

    Args:
        size: texts a batch.
        n: characters a text. It begins anywhere in a sentence.
        seed: what the generator starts from.

    Yields:
        Numbers of `CHARACTERS`, (size, n): to foretell each from those
        before it.

    Raises:
        ValueError: if a text has no characters.

    >>> [text] = next(character_batches(size=1, n=40, seed=0))
    >>> decode(text)
    'the grey horse sees a grey mouse. a old '
    """
    if n < 1:
        raise ValueError(f"a text must have a character, but n={n}")
    generator = torch.Generator().manual_seed(seed)
    told, text = sentences(generator), ""
    while True:
        while len(text) < size * n:
            text += next(told)
        yield encode(text[: size * n]).view(size, n)
        text = text[size * n :]
