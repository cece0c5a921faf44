"""Sentiment: good, not good, not bad; and what comes after *but* decides.

The words that praise and those that blame are as frequent in praise as in
blame: who counts them learns little. What they stand beside must be read.
"""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from jaxtyping import Int
from torch import Tensor

from selfattn.data.drawing import on_the_cpu
from selfattn.data.numbering import said
from selfattn.signatures import Positive, Seed, checked, is_whole, shown

PAD = "·"  # number 0
SUBJECTS = ("film", "plot", "music", "ending")
PRAISE = ("good", "moving", "clever", "funny")
BLAME = ("bad", "dull", "silly", "flat")
WORDS = (PAD, "the", "was", "not", "very", "but", *SUBJECTS, *PRAISE, *BLAME)
LONGEST = 2 * len(("the", "plot", "was", "not", "very", "good")) + 1


class Clause(NamedTuple):
    """One thing that is said, and whether it is praise."""

    words: list[str]
    praise: bool


@checked
def decode(tokens: Int[Tensor, " n"]) -> str:
    """The words, without what a text is filled up with."""
    return " ".join(filter(None, said(tokens, ("", *WORDS[1:]))))


@checked
def clause(drawn: list[int]) -> Clause:
    """Say something of a subject, by five numbers.

    >>> clause([1, 1, 0, 1, 3])
    Clause(words=['the', 'plot', 'was', 'not', 'flat'], praise=True)
    """
    most = len(SUBJECTS), 2, 2, 2, len(PRAISE)
    whole = len(drawn) == len(most) and all(map(is_whole, drawn))
    if not whole or any(
        not 0 <= i < n for i, n in zip(drawn, most, strict=True)
    ):
        raise ValueError(
            f"drawn must be 5 whole numbers from 0 on, less than {most}, but "
            f"it is {shown(drawn)}"
        )
    subject, negated, strong, blamed, word = drawn
    middle = ["not"] * negated + ["very"] * strong
    said = (BLAME if blamed else PRAISE)[word]
    words = ["the", SUBJECTS[subject], "was", *middle, said]
    return Clause(words, bool(negated) == bool(blamed))


@checked
@on_the_cpu
def sentiment_batches(
    size: Positive, *, seed: Seed
) -> Iterator[
    tuple[Int[Tensor, "batch n"], Int[Tensor, " batch"], Int[Tensor, " batch"]]
]:
    """Batches without end, always the same ones for a seed.

    Args:
        size: texts a batch.
        seed: what the generator starts from.

    Yields:
        tokens: texts of one clause or two, numbers of `WORDS`, filled up
            with 0, (size, 13).
        lengths: how many of them are words, (size,).
        label: 1 for praise and 0 for blame, (size,).

    >>> tokens, lengths, label = next(sentiment_batches(size=3, seed=0))
    >>> for text, praise in zip(tokens, label):
    ...     print(decode(text), "|", bool(praise))
    the plot was not moving but the music was very clever | True
    the music was not very moving | False
    the music was not dull but the music was not moving | False
    """
    generator = torch.Generator().manual_seed(seed)
    choices = torch.tensor([len(SUBJECTS), 2, 2, 2, len(PRAISE)])
    while True:
        drawn = torch.rand(
            size, 2, len(choices), generator=generator, dtype=torch.float32
        )
        twice = (
            torch.rand(size, generator=generator, dtype=torch.float32) < 0.5
        )
        tokens = torch.zeros(size, LONGEST, dtype=torch.long)
        lengths, label = tokens.new_zeros(2, size)
        for i, both in enumerate((drawn * choices).long().tolist()):
            first, last = map(clause, both)
            words = [*first.words, "but"] if twice[i] else []
            words += last.words
            lengths[i], label[i] = len(words), last.praise
            numbers = [WORDS.index(word) for word in words]
            tokens[i, : len(words)] = torch.tensor(numbers)
        yield tokens, lengths, label
