"""`jacobian(weights)`: how the weights move when a score moves."""

import torch

from selfattn.doctor.exercise import Exercise, mistake
from selfattn.doctor.probes import Probe, in_other_order

ROW = {"weights": "n_k"}
ROWS = {"weights": "n_q n_k"}
BATCH = {"weights": "batch n_q n_k"}


def as_weights(inputs):
    """Rows of numbers become rows of weights."""
    inputs["weights"] = inputs["weights"].softmax(dim=-1)


def one_hot(inputs):
    """All the weight of each row on its first key."""
    as_weights(inputs)
    inputs["weights"] = torch.zeros_like(inputs["weights"])
    inputs["weights"][..., 0] = 1


def outer(p):
    """The products of any two weights of a row."""
    return p[..., :, None] * p[..., None, :]


def identity(p):
    """One on the diagonal."""
    return torch.eye(p.shape[-1], dtype=p.dtype)


def of_rows(p):
    """The solution."""
    return p.diag_embed() - outer(p)


@mistake
def diagonal_only(weights):
    """Your matrix is zero off the diagonal.

    Cause: This is p_i (1 - p_i) for each weight alone, as for a sigmoid. In a
        softmax one score moves all weights, since they share one sum.
    Cure: Subtract the products of all pairs, too: diag(p) - p pᵀ.
    """
    return (weights * (1 - weights)).diag_embed()


@mistake
def vector_instead_of_matrix(weights):
    """You get one number a weight.

    Cause: This is the diagonal, p_i (1 - p_i).
    Cure: Every score moves every weight: n times n numbers.
    """
    return weights * (1 - weights)


@mistake
def no_diagonal(weights):
    """Your rows do not sum to zero: nothing gains what the others lose.

    Cause: This is -p_i p_j, also for i = j.
    Cure: Add p_i on the diagonal: diag(p) - p pᵀ.
    """
    return -outer(weights)


@mistake
def plus(weights):
    """When one score rises, all of your weights rise.

    Cause: diag(p) + p pᵀ: the sign.
    Cure: What one key gains the others lose: diag(p) - p pᵀ.
    """
    return weights.diag_embed() + outer(weights)


@mistake
def upside_down(weights):
    """A weight of yours falls when its own score rises.

    Cause: p pᵀ - diag(p): the sign of all of it.
    Cure: diag(p) - p pᵀ.
    """
    return outer(weights) - weights.diag_embed()


@mistake
def of_the_logarithm(weights):
    """Your one-hot rows still pass something on.

    Cause: This is δ_ij - p_j, the Jacobian of log-softmax.
    Cure: Multiply row i by p_i.
    """
    return identity(weights) - weights[..., None, :].expand_as(outer(weights))


@mistake
def of_the_logarithm_transposed(weights):
    """Your one-hot rows still pass something on.

    Cause: This is δ_ij - p_i, the Jacobian of log-softmax, on its side.
    Cure: diag(p) - p pᵀ.
    """
    return identity(weights) - weights[..., :, None].expand_as(outer(weights))


@mistake
def identity_minus_products(weights):
    """Your diagonal is too large.

    Cause: 1 stands on it where p_i should.
    Cure: diag(p) - p pᵀ, with the weights on the diagonal.
    """
    return identity(weights) - outer(weights)


@mistake
def one_minus_everywhere(weights):
    """Your matrix has no negative entry.

    Cause: This is p_i (1 - p_j) for all i and j. The 1 belongs on the
        diagonal only.
    Cure: p_i (δ_ij - p_j): diag(p) - p pᵀ.
    """
    return weights[..., :, None] * (1 - weights[..., None, :])


@mistake
def softmax_once_more(weights):
    """Your entries are right for other weights than those given.

    Cause: A softmax is taken of what is one already.
    Cure: Use the weights as they are.
    """
    return of_rows(weights.softmax(dim=-1))


@mistake
def squared_diagonal(weights):
    """Your diagonal is zero.

    Cause: This is diag(p²) - p pᵀ.
    Cure: The diagonal is p_i - p_i², so add p, not its square.
    """
    return (weights * weights).diag_embed() - outer(weights)


@mistake
def one_row_alone(weights):
    """It is right for a single row, and for no more.

    Cause: diag takes the diagonal out of a table, and p[:, None] counts its
        axes from the front, where there may be any number of them.
    Cure: Count from the back: diag_embed puts each row on a diagonal, and
        p[..., :, None] has the last axis whatever stands before it.
    """
    return weights.diag() - weights[:, None] * weights[None, :]


@mistake
def one_row_by_its_numbers(weights):
    """It is right for a single row; where there are more, it raises.

    Cause: torch.outer wants two vectors, and a loop over p[i] meets rows
        where it wants numbers.
    Cure: p[..., :, None] * p[..., None, :] has the products of every row, and
        p.diag_embed() puts each row on a diagonal.
    """
    if weights.dim() > 1:
        raise ValueError("one row is taken")
    return of_rows(weights)


@mistake
def diagonal_taken_out(weights):
    """It is right for a single row, and for no more.

    Cause: diag makes a matrix of a vector; of a matrix it takes the diagonal
        out, and with three axes it raises.
    Cure: Use diag_embed, which puts each row on a diagonal of its own.
    """
    return weights.diag() - outer(weights)


@mistake
def products_among_rows(weights):
    """It is right for a single row, and for no more.

    Cause: p[:, None] * p[None, :] counts its axes from the front, so that of
        several rows each is multiplied with every other.
    Cure: Count from the back: p[..., :, None] * p[..., None, :].
    """
    return weights.diag_embed() - weights[:, None] * weights[None, :]


JACOBIAN = Exercise(
    "scaling/jacobian",
    asks="the matrix of dp_i/ds_j for each row p of weights",
    solution=of_rows,
    probes=(
        Probe("it is diag(p) - p pᵀ", ROW, change=as_weights),
        Probe("gradients flow through it", ROW, gradient=True),
        Probe(
            "a single key leaves nothing to move",
            ROW,
            {"n_k": 1},
            change=as_weights,
        ),
        Probe("each row has its own", ROWS, change=as_weights),
        Probe("so has each row of a batch", BATCH, change=as_weights),
        Probe("as many rows as keys", ROWS, {"n_q": 7}, change=as_weights),
        Probe("a one-hot row passes nothing on", ROWS, change=one_hot),
        Probe(
            "float64 stays float64",
            ROWS,
            dtype=torch.float64,
            change=as_weights,
        ),
        Probe(
            "the order in memory does not matter", BATCH, change=in_other_order
        ),
    ),
    mistakes=(
        diagonal_only,
        vector_instead_of_matrix,
        no_diagonal,
        plus,
        upside_down,
        of_the_logarithm,
        of_the_logarithm_transposed,
        identity_minus_products,
        one_minus_everywhere,
        softmax_once_more,
        squared_diagonal,
        one_row_alone,
        one_row_by_its_numbers,
        diagonal_taken_out,
        products_among_rows,
    ),
)
