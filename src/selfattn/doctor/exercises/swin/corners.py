"""`corners(rows, columns, M, a)`: who may see whom after a cyclic shift."""

import torch

from selfattn.doctor.exercise import Exercise, mistake
from selfattn.doctor.exercises.swin.partition import solution as partition
from selfattn.doctor.probes import Probe


def grid(rows, columns, M, a):
    """Four numbers as the inputs of a probe."""
    given = {"rows": rows, "columns": columns, "M": M, "a": a}
    return {name: (lambda _, x=x: x) for name, x in given.items()}


def number(rows, columns, M, a, *, moved=True, both=True):
    """Whose window each token is in, (rows, columns, 1), before the roll."""
    shift = a if moved else 0
    down = (torch.arange(rows) - shift) // M
    right = (torch.arange(columns) - shift) // M
    if not both:
        right = right * 0
    return (down[:, None] * (columns + 1) + right)[..., None]


def by_windows(numbers, M, a):
    """Roll, cut, and compare: (windows, M M, M M)."""
    cut = partition(numbers.roll((-a, -a), dims=(0, 1)), M)
    return cut == cut.mT


def solution(rows, columns, M, a):
    """Number the windows in the picture, roll the numbers with it."""
    return by_windows(number(rows, columns, M, a), M, a)


@mistake
def nothing_masked(rows, columns, M, a):
    """Opposite edges see each other.

    Cause: Nothing is hidden: whoever the roll has brought into one window
        attends to each other.
    Cure: Compare the windows as they lie in the picture, before the roll.
    """
    return solution(rows, columns, M, a) | True


@mistake
def windows_not_moved(rows, columns, M, a):
    """Your mask undoes the shift.

    Cause: The tokens are numbered by the windows of the layer before, so
        that only what shared one of those may see each other.
    Cure: (row - a) // M, not row // M.
    """
    return by_windows(number(rows, columns, M, a, moved=False), M, a)


@mistake
def rows_alone(rows, columns, M, a):
    """Left and right edges see each other.

    Cause: The windows are compared by rows, not by columns.
    Cure: Both numbers must be equal.
    """
    return by_windows(number(rows, columns, M, a, both=False), M, a)


@mistake
def numbers_not_rolled(rows, columns, M, a):
    """Your mask is that of another picture.

    Cause: The tokens were rolled and their numbers were not.
    Cure: Roll the numbers with the tokens, then cut.
    """
    return by_windows(number(rows, columns, M, a), M, 0)


@mistake
def rolled_the_wrong_way(rows, columns, M, a):
    """Your numbers are rolled away from the tokens.

    Cause: roll by +a moves down and to the right. Windows that begin at
        row a come to the top by rolling up.
    Cure: roll by -a, and by +a at the end.
    """
    return by_windows(number(rows, columns, M, a), M, -a)


@mistake
def moved_the_other_way(rows, columns, M, a):
    """Your windows are moved up and to the left.

    Cause: The shift is added: a token's window is (row + a) // M.
    Cure: Windows that are moved down by a begin at row a: (row - a) // M.
    """
    return by_windows(number(rows, columns, M, -a), M, a)


@mistake
def true_where_hidden(rows, columns, M, a):
    """Your mask is the other way round.

    Cause: True where two must not see each other, as in some libraries.
    Cure: Here True means: may look.
    """
    return ~solution(rows, columns, M, a)


@mistake
def last_windows_hidden(rows, columns, M, a):
    """Windows at the edges see nothing, or too little.

    Cause: A window in which two parts of the picture meet was given up, all
        but each token's view of itself.
    Cure: Within each part, everybody sees everybody.
    """
    seen = solution(rows, columns, M, a)
    whole = seen.all(dim=-1).all(dim=-1)[:, None, None]
    return seen & (whole | torch.eye(M * M, dtype=torch.bool))


CORNERS = Exercise(
    "swin/corners",
    asks="the mask of the windows after a cyclic shift, True where seen",
    solution=solution,
    probes=(
        Probe("corners and edges are masked", grid(6, 9, 3, 1)),
        Probe("a shift by half of an even window", grid(8, 12, 4, 2)),
        Probe("without a shift nothing is hidden", grid(6, 4, 2, 0)),
        Probe("one window falls into four parts", grid(5, 5, 5, 2)),
        Probe("a single line of windows", grid(3, 12, 3, 2)),
    ),
    mistakes=(
        nothing_masked,
        windows_not_moved,
        rows_alone,
        numbers_not_rolled,
        rolled_the_wrong_way,
        moved_the_other_way,
        true_where_hidden,
        last_windows_hidden,
    ),
)
