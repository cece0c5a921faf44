"""`add_positions(x, table)`: a position for each token of each text."""

import torch

from selfattn.doctor.exercise import Exercise, mistake
from selfattn.doctor.probes import SQUARE, Probe, in_other_order


def add_positions(x, table):
    """Row p of the table to the token at position p, in every text."""
    n = x.shape[-2]
    if n > len(table):
        raise ValueError(
            "there must be a position for every token, but the table has "
            f"{len(table)} and x is {tuple(x.shape)}"
        )
    return x + table[:n]


BATCH = {"x": "batch n d", "table": "rows d"}


def refusal(answer, inputs):
    """What comes back, or what is raised: a ValueError, or another error."""
    if not callable(answer):
        return None
    try:
        return answer(*inputs.values())
    except NotImplementedError:
        raise
    except ValueError:
        return "a ValueError"
    except Exception:
        return "another error"


@mistake
def positions_count_the_texts(x, table):
    """All tokens of a text get one position, and each text another.

    Cause: The table is cut and laid along axis 0. That was right for tokens
        in (n, batch, d); here the first axis is the batch.
    Cure: Cut it to x.shape[1] rows, and let it broadcast over the batch.
    """
    return x + table[: x.shape[0], None]


@mistake
def as_many_rows_as_texts(x, table):
    """It works by chance, when there are as many texts as tokens.

    Cause: The table is cut to x.shape[0], the number of texts.
    Cure: x.shape[1] is the number of tokens.
    """
    return x + table[: x.shape[0]]


@mistake
def no_check(x, table):
    """A table of one row gives all tokens the same position.

    Cause: table[:n] does not complain when there are fewer rows than n, and
        a single row broadcasts. (With two rows or more, the sum complains.)
    Cure: Raise a ValueError if n > len(table).
    """
    return x + table[: x.shape[-2]]


@mistake
def another_error(x, table):
    """A table that is too short is refused, but not with a ValueError.

    Cause: assert raises an AssertionError, and nothing at all under
        python -O. Who catches a ValueError, as was agreed, misses it.
    Cure: if n > len(table): raise ValueError(...).
    """
    if x.shape[-2] > len(table):
        raise AssertionError("there must be a position for every token")
    return x + table[: x.shape[-2]]


@mistake
def exact_table_refused(x, table):
    """A table with just as many rows as there are tokens is refused.

    Cause: The check asks for more rows than tokens: >= where > is meant.
    Cure: Refuse only if n > len(table).
    """
    if x.shape[-2] >= len(table):
        raise ValueError("there is no row to spare")
    return add_positions(x, table)


@mistake
def positions_still_count_the_texts(x, table):
    """All tokens of a text get one position, and each text another.

    Cause: The check of the length is right, but the table is still cut and
        laid along axis 0, and here the first axis is the batch.
    Cure: Cut it to x.shape[1] rows, and let it broadcast over the batch.
    """
    add_positions(x, table)
    return x + table[: x.shape[0], None]


@mistake
def no_positions(x, table):
    """Nothing has been added.

    Cause: The table is not used.
    Cure: x + table[:n].
    """
    return x + 0 * table[:1]


@mistake
def one_position_for_all(x, table):
    """All tokens get position 0.

    Cause: One row of the table is added.
    Cure: Rows 0 to n - 1: table[:n].
    """
    return x + table[0]


@mistake
def the_whole_table(x, table):
    """It fails unless the table has just as many rows as there are tokens.

    Cause: The table is not cut.
    Cure: table[:n].
    """
    return x + table


@mistake
def the_last_rows(x, table):
    """Your first token does not get the first row.

    Cause: The last n rows of the table are added.
    Cure: The first: table[:n].
    """
    return x + table[-x.shape[-2] :]


@mistake
def counted_from_one(x, table):
    """Your first token gets the second row.

    Cause: Positions are counted from 1.
    Cure: table[:n].
    """
    n = x.shape[-2]
    if n >= len(table):
        raise ValueError("there is no such row")
    return x + table[1 : n + 1]


@mistake
def last_row_repeated(x, table):
    """Tokens past the end of the table share its last row.

    Cause: Positions are clamped to the table's length.
    Cure: Raise a ValueError: better no answer than a wrong one.
    """
    p = torch.arange(x.shape[-2]).clamp(max=len(table) - 1)
    return x + table[p]


@mistake
def starting_over(x, table):
    """Tokens past the end of the table are back at position 0.

    Cause: Positions are taken modulo the table's length.
    Cure: Raise a ValueError: better no answer than a wrong one.
    """
    return x + table[torch.arange(x.shape[-2]) % len(table)]


@mistake
def cut_to_the_table(x, table):
    """Where the table is too short, tokens are lost.

    Cause: Tokens past its end are dropped.
    Cure: Raise a ValueError.
    """
    return x[..., : len(table), :] + table[: x.shape[-2]]


@mistake
def positions_alone(x, table):
    """You return where the tokens are, but no longer what they are.

    Cause: The tokens are not added.
    Cure: x + table[:n].
    """
    return add_positions(torch.zeros_like(x), table)


@mistake
def in_place(x, table):
    """The output is right, but x itself has been changed with it.

    Cause: += writes into the caller's tensor.
    Cure: x + table[:n] makes a new one.
    """
    x.data += add_positions(torch.zeros_like(x), table)
    return x


BATCH_AXIS = Exercise(
    "positions/batch_axis",
    asks="x, (batch, n, d), with row p of the table added to every token p",
    solution=add_positions,
    probes=(
        Probe("token p gets row p", BATCH, {"rows": 5}, gradient=True),
        Probe(
            "of a longer table, the first rows are used", BATCH, {"rows": 11}
        ),
        Probe(
            "as many texts as tokens are no harder",
            BATCH,
            {**SQUARE, "rows": 7},
        ),
        Probe("one text alone has positions", BATCH, {"batch": 1, "rows": 7}),
        Probe("one token alone has position 0", BATCH, {"n": 1, "rows": 7}),
        Probe(
            "float64 stays float64",
            BATCH,
            {"rows": 7},
            torch.float64,
            needs=("float64",),
        ),
        Probe(
            "a table that is too short is refused with a ValueError",
            BATCH,
            {"rows": 3},
            experiment=refusal,
        ),
        Probe(
            "even if it has but one row",
            BATCH,
            {"rows": 1},
            experiment=refusal,
        ),
        Probe(
            "the order in memory does not matter",
            BATCH,
            {"rows": 7},
            change=in_other_order,
        ),
    ),
    mistakes=(
        positions_count_the_texts,
        as_many_rows_as_texts,
        no_check,
        another_error,
        exact_table_refused,
        positions_still_count_the_texts,
        no_positions,
        one_position_for_all,
        the_whole_table,
        the_last_rows,
        counted_from_one,
        last_row_repeated,
        starting_over,
        cut_to_the_table,
        positions_alone,
        in_place,
    ),
)
