"""Agreement: the keys to the old cabinet *are* rusty.

A verb agrees with its subject, and not with the noun beside it. Between the
two stand up to three other nouns, each as often in the singular as in the
plural, which the verb must not listen to.
"""

from collections.abc import Iterator

import torch
from jaxtyping import Int
from torch import Tensor

from selfattn.data.drawing import on_the_cpu
from selfattn.data.numbering import said
from selfattn.signatures import Positive, Seed, checked

SINGULAR = ("key", "dog", "door", "child", "letter", "picture")
PLURAL = ("keys", "dogs", "doors", "children", "letters", "pictures")
OPENERS = ("today", "here", "surely")
WORDS = (
    *("the", "to", "near", "behind"),
    *(*OPENERS, *SINGULAR, *PLURAL),
)
MOST = 3  # nouns between subject and verb


@checked
def decode(tokens: Int[Tensor, " n"]) -> str:
    """The words."""
    return " ".join(said(tokens, WORDS))


@checked
@on_the_cpu
def agreement_batches(
    size: Positive, *, seed: Seed
) -> Iterator[tuple[Int[Tensor, "batch n"], Int[Tensor, " batch"], int]]:
    """Batches without end, always the same ones for a seed.

    Args:
        size: sentences a batch.
        seed: what the generator starts from.

    Yields:
        tokens: sentences up to the verb, numbers of `WORDS`, (size, n).
            How many words open them, and how many nouns stand in between,
            differs from batch to batch.
        target: 1 if the verb is *are* and 0 if it is *is*, (size,).
        where: the position of the subject, one for the batch.

    >>> tokens, target, where = next(agreement_batches(size=1, seed=2))
    >>> print(decode(tokens[0]), ["is", "are"][target[0]])
    the picture to the door to the keys near the doors is
    >>> WORDS[tokens[0, where]] in (SINGULAR, PLURAL)[target[0]]
    True
    """
    generator = torch.Generator().manual_seed(seed)

    def some(words: tuple[str, ...]) -> Tensor:
        """A word a sentence, each as likely as another."""
        chosen = torch.randint(len(words), (size,), generator=generator)
        return torch.tensor([WORDS.index(word) for word in words])[chosen]

    the = torch.full((size,), WORDS.index("the"))
    while True:
        before, between = torch.randint(
            MOST + 1, (2,), generator=generator
        ).tolist()
        words = [some(OPENERS) for _ in range(before)]
        words += [the, some(SINGULAR + PLURAL)]
        for _ in range(between):
            beside = some(("to", "near", "behind"))
            words += [beside, the, some(SINGULAR + PLURAL)]
        tokens, where = torch.stack(words, dim=-1), before + 1
        yield (
            tokens,
            (tokens[:, where] >= WORDS.index(PLURAL[0])).long(),
            where,
        )
