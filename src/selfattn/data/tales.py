"""Tales: three kinds of text, each of which needs another look back.

*Echoes*: a few words in random order, said again and again. *Agreement*: the
dogs near the river *are* tired. *Coreference*: the animal did not cross the
street because it was too tired; the *animal* was too tired. One model that
foretells all three has to look at what stood here before, at the subject, and
at the one that *it* was.
"""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from jaxtyping import Int
from torch import Tensor

from selfattn.data.drawing import on_the_cpu, where_it_draws
from selfattn.data.numbering import numbers, said
from selfattn.signatures import Positive, Seed, checked

START, UNKNOWN = ".", "?"
ANIMALS = ("animal", "cat", "child", "horse", "robot")
PLACES = ("street", "river", "bridge", "field", "road")
OF_ANIMALS = ("tired", "hungry", "afraid", "lazy")  # what only those can be
OF_PLACES = ("wide", "deep", "busy", "long")
MANY_ANIMALS = ("animals", "cats", "children", "horses", "robots")
MANY_PLACES = ("streets", "rivers", "bridges", "fields", "roads")
NOUNS = (ANIMALS + PLACES, MANY_ANIMALS + MANY_PLACES)
FORMS = (  # two ways, so that the first noun may be the one or the other
    "the {animal} did not cross the {place} because it was too {word}",
    "the {place} was not for the {animal} because it was too {word}",
)
AFTER = " . the {who} was too {word} ."
FILLERS = dict.fromkeys(" ".join(FORMS).split()) | {"near": None}
WORDS = (
    *(START, UNKNOWN, "is", "are"),
    *(word for word in FILLERS if "{" not in word),
    *(*NOUNS[0], *NOUNS[1], *OF_ANIMALS, *OF_PLACES),
)
ECHOED = (*NOUNS[0], *OF_ANIMALS, *OF_PLACES)
LONGEST = 20  # words, with the full stop that begins a text
SHORTEST_ROUND, LONGEST_ROUND = 4, 9  # words before an echo begins anew
MOST = 2  # nouns between subject and verb
KINDS = ("echo", "agreement", "coreference")


class Tales(NamedTuple):
    """A batch of one kind.

    Attributes:
        tokens: numbers of `WORDS`, (batch, n); each begins with a full stop.
        asked: positions whose next word tells whether it has looked back.
        where: the position that it had to look at, for each of those,
            (batch, asked).
    """

    tokens: Int[Tensor, "batch n"]
    asked: Int[Tensor, " asked"]
    where: Int[Tensor, "batch asked"]


@checked
def encode(text: str) -> Int[Tensor, " n"]:
    """The number of each word; that of "?" for a word that is none of them.

    >>> decode(encode(". the cat sees the dog"))
    '. the cat ? the ?'
    """
    known = {word: i for i, word in enumerate(WORDS)}
    return numbers([known.get(x, known[UNKNOWN]) for x in text.split()])


@checked
def decode(tokens: Int[Tensor, " n"]) -> str:
    """The words."""
    return " ".join(said(tokens, WORDS))


@where_it_draws
def echoes(size: int, generator: torch.Generator) -> Tales:
    """Words in random order, again and again; one round for the batch."""
    rounds = SHORTEST_ROUND, LONGEST_ROUND + 1
    (period,) = torch.randint(*rounds, (1,), generator=generator).tolist()
    chance = torch.rand(
        size, len(ECHOED), generator=generator, dtype=torch.float32
    )
    place = torch.arange(LONGEST - 1) % period
    said = encode(" ".join(ECHOED))[chance.argsort(-1)[:, place]]
    tokens = torch.nn.functional.pad(said, (1, 0))
    asked = torch.arange(period + 1, LONGEST - 1)
    where = (asked - period + 1).expand(size, -1)
    return Tales(tokens, asked, where)


@where_it_draws
def agreements(size: int, generator: torch.Generator) -> Tales:
    """A subject, other nouns, a verb that agrees with the subject."""

    def some(n: int) -> list[int]:
        return torch.randint(n, (size,), generator=generator).tolist()

    (between,) = torch.randint(MOST + 1, (1,), generator=generator).tolist()
    nouns = [list(zip(some(2), some(10), strict=True))]
    nouns += [
        list(zip(some(2), some(10), strict=True)) for _ in range(between)
    ]
    texts = []
    for word, *named in zip(some(4), *nouns, strict=True):
        subject = named[0]
        kind = OF_ANIMALS if subject[1] < len(ANIMALS) else OF_PLACES
        noun = " near the ".join(NOUNS[many][i] for many, i in named)
        verb = ("is", "are")[subject[0]]
        texts.append(f". the {noun} {verb} {kind[word]} .")
    tokens = torch.stack([encode(text) for text in texts])
    verb_at = torch.tensor([2 + 3 * between])
    return Tales(tokens, verb_at, torch.full((size, 1), 2))


@where_it_draws
def coreferences(size: int, generator: torch.Generator) -> Tales:
    """Something was too tired, or too wide; and then who it was."""

    def some(n: int) -> list[int]:
        return torch.randint(n, (size,), generator=generator).tolist()

    texts, where = [], []
    drawn = zip(some(2), some(2), some(5), some(5), some(4), strict=True)
    for form, who, animal, place, word in drawn:
        both = {"animal": ANIMALS[animal], "place": PLACES[place]}
        told = (OF_ANIMALS, OF_PLACES)[who][word]
        noun = both[("animal", "place")[who]]
        text = f". {FORMS[form]}{AFTER}"
        text = text.format(**both, who=noun, word=told)
        texts.append(text)
        where.append([text.split().index(noun)])
    tokens = torch.stack([encode(text) for text in texts])
    return Tales(tokens, torch.tensor([14]), torch.tensor(where))


@checked
@on_the_cpu
def tale_batches(
    size: Positive, *, seed: Seed, kind: str | None = None
) -> Iterator[Tales]:
    """Batches without end, always the same ones for a seed.

    Args:
        size: texts a batch.
        seed: what the generator starts from.
        kind: one of `KINDS`; one after the other when None.

    Raises:
        ValueError: if there is no such kind.

    >>> from itertools import islice
    >>> for tale in islice(tale_batches(size=1, seed=1), 1, 3):
    ...     print(decode(tale.tokens[0, : tale.asked[-1] + 2]))
    ...     print("  looks at:", decode(tale.tokens[0, tale.where[0, -1:]]))
    . the horse near the robot is
      looks at: horse
    . the child did not cross the road because it was too afraid . the child
      looks at: child
    """
    if kind not in (None, *KINDS):
        raise ValueError(f"a kind is one of {', '.join(KINDS)}, but {kind!r}")
    generator = torch.Generator().manual_seed(seed)
    makers = dict(zip(KINDS, (echoes, agreements, coreferences), strict=True))
    wanted = [makers[kind]] if kind else [*makers.values()]
    while True:
        for make in wanted:
            yield make(size, generator)
