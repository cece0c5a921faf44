"""Coreference: who *it* is.

"The animal did not cross the street because it was too tired": the animal.
"... because it was too wide": the street. Nothing but the last word tells.
"""

from collections.abc import Iterator

import torch
from jaxtyping import Int
from torch import Tensor

from selfattn.data.drawing import on_the_cpu
from selfattn.data.numbering import said
from selfattn.signatures import Positive, Seed, checked

ANIMALS = ("animal", "cat", "child", "horse", "robot")
PLACES = ("street", "river", "bridge", "field", "road")
OF_ANIMALS = ("tired", "hungry", "afraid", "lazy")  # what only those can be
OF_PLACES = ("wide", "deep", "busy", "long")
# Two ways to say it, so that the first noun may be the one or the other.
FORMS = (
    "the {animal} did not cross the {place} because it was too {word}",
    "the {place} was not for the {animal} because it was too {word}",
)
FILLERS = dict.fromkeys(x for x in " ".join(FORMS).split() if "{" not in x)
WORDS = (*FILLERS, *ANIMALS, *PLACES, *OF_ANIMALS, *OF_PLACES)
IT = FORMS[0].split().index("it")  # where *it* stands, in both


@checked
def decode(tokens: Int[Tensor, " n"]) -> str:
    """The words."""
    return " ".join(said(tokens, WORDS))


@checked
@on_the_cpu
def coreference_batches(
    size: Positive, *, seed: Seed
) -> Iterator[
    tuple[Int[Tensor, "batch n"], Int[Tensor, " batch"], Int[Tensor, " batch"]]
]:
    """Batches without end, always the same ones for a seed.

    Args:
        size: sentences a batch.
        seed: what the generator starts from.

    Yields:
        tokens: sentences, numbers of `WORDS`, (size, 12); *it* stands at
            position `IT` in all of them.
        target: the word that *it* is, (size,).
        where: the position of that word, (size,): 1 or 6.

    >>> tokens, target, where = next(coreference_batches(size=2, seed=0))
    >>> for sentence, word in zip(tokens, target):
    ...     print(decode(sentence), "|", WORDS[word])
    the horse did not cross the bridge because it was too deep | bridge
    the field was not for the robot because it was too lazy | robot
    """
    generator = torch.Generator().manual_seed(seed)
    kinds = (OF_ANIMALS, OF_PLACES)

    def some(n: int) -> list[int]:
        return torch.randint(n, (size,), generator=generator).tolist()

    while True:
        drawn = zip(some(2), some(2), some(5), some(5), some(4), strict=True)
        tokens, target = [], []
        for form, who, animal, place, word in drawn:
            nouns = ANIMALS[animal], PLACES[place]
            words = dict(zip(("animal", "place"), nouns, strict=True))
            words["word"] = kinds[who][word]
            text = FORMS[form].format(**words).split()
            tokens.append([WORDS.index(x) for x in text])
            target.append(WORDS.index(nouns[who]))
        both = torch.tensor(tokens), torch.tensor(target)
        where = (both[0] == both[1][:, None]).long().argmax(dim=-1)
        yield *both, where
