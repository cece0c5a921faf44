"""The table that a thing adds, as is seen of what it makes of zeros.

Whoever makes his table of two smaller ones, or anew for every text, holds
none that could be read off him; and who holds one may add it several times,
or from a later row on, as its first ones are spare.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from selfattn.doctor.copying import copy_of
from selfattn.doctor.kinds.trial_calls import outcome

MOST = 64  # rows of a table that goes on, as far as anybody asks
WIDTHS = (8, 6, 4, 5, 7, 10, 12, 16)  # of one that does not say how wide
SPARE = 2  # rows from which on nobody begins by mistake
Call = Callable[..., object]


def at_rest(thing: Any) -> Any:
    """A copy that drops nothing, and may change; a function itself."""
    module = isinstance(thing, nn.Module)
    return copy_of(thing).eval() if module else thing


def of_zeros(call: Call, rows: int, d: int) -> Tensor | None:
    """What is added to one text of so many tokens, (rows, d)."""
    zeros = torch.zeros(1, rows, d)
    with torch.no_grad():
        said = outcome(call, zeros)
    fits = isinstance(said, Tensor) and said.shape == zeros.shape
    return said[0].float() if fits and bool(said.isfinite().all()) else None


def added(
    adapted: Callable[[str], Call], layouts: Sequence[str], widths: Sequence
) -> Tensor | None:
    """All rows that it adds, as far as it has any; None if it adds none.

    Args:
        adapted: makes a call of it in a layout.
        layouts: those in which it may be called.
        widths: those that its tokens may have, the likeliest first.
    """
    for d in (*dict.fromkeys(widths), *WIDTHS):
        for call in map(adapted, layouts):
            few = of_zeros(call, 3, d)
            if few is not None and not few.equal(few[:1].expand_as(few)):
                return of_zeros(call, longest(call, d), d)
    return None


def longest(call: Call, d: int) -> int:
    """The number of tokens of the longest text that it takes, or `MOST`."""
    takes, refuses = 3, MOST + 1
    while refuses - takes > 1:
        middle = MOST if refuses > MOST else (takes + refuses) // 2
        if of_zeros(call, middle, d) is None:
            refuses = middle
        elif middle == MOST:
            return MOST
        else:
            takes = middle
    return takes


def is_of(seen: Tensor, held: Tensor) -> bool:
    """Whether a table is another one several times, or its later rows."""
    rows, all_rows = len(seen), held.float()
    first = all_rows[:rows]
    times = (seen * first).sum() / first.square().sum().clamp(min=1e-12)
    if rows == len(held) and seen.allclose(times * first, atol=1e-5):
        return bool(times.abs() > 1e-3)
    spare = len(held) - rows
    return spare >= SPARE and seen.allclose(all_rows[spare:], atol=1e-5)


def goes_on(call: Call, table: Tensor) -> bool:
    """Whether the token behind a table gets a row that is none of it."""
    rows, d = table.shape
    more = of_zeros(call, rows + 1, d)
    if more is None:
        return False
    own = more[:rows].allclose(table.float(), atol=1e-4)
    far = (more[-1] - table.float()).abs().amax(dim=-1)
    return own and bool((far > 1e-4).all() and more[-1].any())
