"""In which axes texts are handed over, and come back.

The tokens of a picture lie in rows. One that takes pictures is asked as all
are: its text is laid out before it is handed over, and what comes back is
read row by row.
"""

import math
from collections.abc import Sequence

from torch import Tensor

TEXTS = {
    "BND": "batch, tokens, features",
    "NBD": "tokens, batch, features",
}
PICTURES = {
    "BDN": "batch, features, tokens",
    "BDHW": "batch, features, rows, columns",
    "BHWD": "batch, rows, columns, features",
}
LAYOUTS = TEXTS | PICTURES


def tried(told: object, usual: Sequence[str] = tuple(TEXTS)) -> list[str]:
    """The layouts in which a thing is called, to see how it is."""
    return [told] if isinstance(told, str) else [*usual]


def rows_of(n: int) -> int:
    """In how many rows so many tokens lie: as nearly square as they can.

    >>> rows_of(6), rows_of(7)
    (2, 1)
    """
    return max(r for r in range(1, math.isqrt(n) + 1) if n % r == 0)


def laid_out(text: Tensor, layout: str) -> Tensor:
    """A text, (batch, n, d), in other axes."""
    if layout == "NBD":
        return text.transpose(0, 1)
    if layout == "BDN":
        return text.mT
    if layout not in PICTURES:
        return text
    rows = rows_of(text.shape[1]) if text.shape[1] else 1
    picture = text.unflatten(1, (rows, text.shape[1] // rows))
    # Contiguous, as a picture is read: the gradient of PyTorch's GroupNorm
    # (2.13) reads memory that is not its own where axes were exchanged.
    return picture.movedim(-1, 1).contiguous() if layout == "BDHW" else picture


def read_back(output: Tensor, layout: str) -> Tensor:
    """What came back in a layout as (batch, n, d).

    What has other axes than were handed over is left as it came.
    """
    if output.ndim != axes_of(layout):
        return output
    if layout == "NBD":
        return output.transpose(0, 1)
    if layout == "BDN":
        return output.mT
    if layout not in PICTURES:
        return output
    picture = output.movedim(1, -1) if layout == "BDHW" else output
    return picture.flatten(1, 2)


def axes_of(layout: str) -> int:
    """How many axes a text has in a layout."""
    return len(layout)
