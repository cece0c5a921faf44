"""Dates as people write them, to be written as machines do.

Each letter is a token. Where the day, the month and the year stand differs
from date to date, so that whoever writes the answer must look for them.
"""

import datetime
from collections.abc import Iterator
from typing import Annotated

import torch
from jaxtyping import Int
from torch import Tensor

from selfattn.data.drawing import on_the_cpu
from selfattn.data.numbering import numbers, said
from selfattn.signatures import Positive, Seed, Within, checked

Style = Annotated[int, Within(0, 2)]
PAD = " "  # also what a text is filled up with; number 0
MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)
CHARACTERS = " ,-0123456789" + "".join(sorted(set("".join(MONTHS))))
LONGEST = len("30 September 2021,")  # characters of a source
N_TARGET = len("2021-09-30")
FIRST, LAST = datetime.date(1970, 1, 1), datetime.date(2069, 12, 31)


@checked
def encode(text: str) -> Int[Tensor, " n"]:
    """The number of each character.

    Raises:
        ValueError: if a character occurs in no date.

    >>> decode(encode("3 March 2021"))
    '3 March 2021'
    """
    if unknown := set(text) - set(CHARACTERS):
        raise ValueError(
            f"a date has no other characters than {CHARACTERS!r}, "
            f"but {text!r} has {sorted(unknown)}"
        )
    return numbers([CHARACTERS.index(x) for x in text])


@checked
def decode(tokens: Int[Tensor, " n"]) -> str:
    """The text, without what it is filled up with."""
    return "".join(said(tokens, CHARACTERS)).rstrip(PAD)


@checked
def written(date: datetime.date, style: Style) -> str:
    """A date in one of three styles.

    >>> [written(datetime.date(2021, 3, 9), style) for style in range(3)]
    ['9 March 2021', 'March 9, 2021', '2021, March 9']
    """
    day, month, year = date.day, MONTHS[date.month - 1], date.year
    return (
        f"{day} {month} {year}",
        f"{month} {day}, {year}",
        f"{year}, {month} {day}",
    )[style]


@checked
@on_the_cpu
def date_batches(
    size: Positive, *, seed: Seed
) -> Iterator[tuple[Int[Tensor, "batch n"], Int[Tensor, "batch 10"]]]:
    """Batches without end, always the same ones for a seed.

    Args:
        size: dates a batch.
        seed: what the generator starts from.

    Yields:
        source: the characters of dates from 1970 to 2069, in one of three
            styles each, filled up with 0, (size, 18).
        target: those of the same dates as 2021-03-09, (size, 10).

    >>> source, target = next(date_batches(size=2, seed=0))
    >>> for one, other in zip(source, target):
    ...     print(decode(one), "is", decode(other))
    2056, October 10 is 2056-10-10
    30 September 2017 is 2017-09-30
    """
    generator = torch.Generator().manual_seed(seed)
    days = LAST.toordinal() - FIRST.toordinal() + 1
    while True:
        day = torch.randint(days, (size,), generator=generator)
        style = torch.randint(3, (size,), generator=generator)
        dates = [
            datetime.date.fromordinal(FIRST.toordinal() + i)
            for i in day.tolist()
        ]
        texts = map(written, dates, style.tolist())
        source = [encode(text.ljust(LONGEST)) for text in texts]
        target = [encode(date.isoformat()) for date in dates]
        yield torch.stack(source), torch.stack(target)
