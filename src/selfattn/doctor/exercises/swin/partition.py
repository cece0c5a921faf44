"""`partition(x, M)`: a picture's tokens by windows."""

from typing import Any

import torch

from selfattn.doctor.exercise import Exercise, mistake
from selfattn.doctor.probes import Probe


def picture(
    rows: int, columns: int, M: int, d: int = 3
) -> tuple[dict[str, Any], dict[str, int]]:
    """A picture of tokens, and the side of a window."""
    inputs = {"x": "rows columns d", "M": lambda _: M}
    return inputs, {"rows": rows, "columns": columns, "d": d}


def solution(x, M):
    """Rows and columns apart into windows, windows first."""
    x = x.unflatten(0, (-1, M)).unflatten(2, (-1, M))
    return x.transpose(1, 2).flatten(0, 1).flatten(1, 2)


@mistake
def never_transposed(x, M):
    """Your windows are stretches of rows.

    Cause: A view alone: tokens that follow each other in memory were taken
        together. A window takes M tokens of a row, then M of the next.
    Cure: Split rows and columns first, bring both windows' axes to the
        front, then flatten.
    """
    return x.flatten(0, 1).unflatten(0, (-1, M * M))


@mistake
def columns_before_rows(x, M):
    """The tokens of each window are turned on their diagonal.

    Cause: Within a window, columns come before rows.
    Cure: Row by row, as the whole picture is read.
    """
    x = x.unflatten(0, (-1, M)).unflatten(2, (-1, M))
    return x.permute(0, 2, 3, 1, 4).flatten(0, 1).flatten(1, 2)


@mistake
def windows_down_first(x, M):
    """Your windows are counted column by column.

    Cause: The windows' two axes are exchanged.
    Cure: Row by row, as the tokens are.
    """
    x = x.unflatten(0, (-1, M)).unflatten(2, (-1, M))
    return x.permute(2, 0, 1, 3, 4).flatten(0, 1).flatten(1, 2)


@mistake
def every_other(x, M):
    """Your windows are spread over the whole picture.

    Cause: M was taken for how many windows there are: tokens that lie far
        apart come together, as in a dilated window.
    Cure: unflatten(0, (-1, M)): M is how many rows a window has.
    """
    x = x.unflatten(0, (M, -1)).unflatten(2, (M, -1))
    return x.permute(1, 3, 0, 2, 4).flatten(0, 1).flatten(1, 2)


@mistake
def lines_of_windows(x, M):
    """A whole line of windows is one window.

    Cause: Only the rows are split.
    Cure: Split the columns, too.
    """
    return x.unflatten(0, (-1, M)).flatten(1, 2)


@mistake
def stripes(x, M):
    """Your windows run along columns.

    Cause: Only the columns are split.
    Cure: Split the rows, too.
    """
    return x.unflatten(1, (-1, M)).permute(1, 0, 2, 3).flatten(1, 2)


@mistake
def sliding(x, M):
    """Your windows overlap.

    Cause: There is a window at every place, as in a convolution.
    Cure: A token lies in one window: M rows, and then the next M.
    """
    x = x.unfold(0, M, 1).unfold(1, M, 1)  # (..., d, M, M)
    return x.flatten(0, 1).permute(0, 2, 3, 1).flatten(1, 2)


@mistake
def not_flattened(x, M):
    """Your windows still have rows and columns.

    Cause: What is left is (windows, M, M, d). Attention wants a window's
        tokens along one axis.
    Cure: .flatten(1, 2).
    """
    x = x.unflatten(0, (-1, M)).unflatten(2, (-1, M))
    return x.transpose(1, 2).flatten(0, 1)


PARTITION = Exercise(
    "swin/partition",
    asks="a picture (rows, columns, d) as windows, (windows, M M, d)",
    solution=solution,
    probes=(
        Probe(
            "each window has its tokens, row by row",
            *picture(6, 10, 2),
            gradient=True,
            fixed=("rows", "columns"),
        ),
        Probe(
            "as many windows down as across",
            *picture(9, 9, 3),
            fixed=("rows", "columns"),
        ),
        Probe(
            "one window is the whole picture",
            *picture(5, 5, 5),
            fixed=("rows", "columns"),
        ),
        Probe(
            "a window of one token",
            *picture(2, 3, 1),
            fixed=("rows", "columns"),
        ),
        Probe(
            "float64 stays float64",
            *picture(4, 8, 4),
            dtype=torch.float64,
            fixed=("rows", "columns"),
        ),
    ),
    mistakes=(
        never_transposed,
        columns_before_rows,
        windows_down_first,
        every_other,
        lines_of_windows,
        stripes,
        sliding,
        not_flattened,
    ),
)
