"""`weights(q, k)`: who looks at whom, how much."""

import math

import torch
import torch.nn.functional as F

from selfattn.doctor.exercise import Exercise, mistake
from selfattn.doctor.probes import SQUARE, Probe, in_other_order, louder
from selfattn.dot_product import attention_weights

QK = {"q": "n_q d", "k": "n_k d"}
QK_BATCH = {"q": "batch n_q d", "k": "batch n_k d"}
QK_HEADS = {"q": "batch heads n_q d", "k": "batch heads n_k d"}

Shapes = dict[str, str]


def stays_apart(
    single: Shapes, batch: Shapes, heads: Shapes
) -> tuple[Probe, ...]:
    """What may not get mixed up: sequences, heads, types, rows in memory.

    Args:
        single: the inputs of one sequence.
        batch: those of several.
        heads: those of several, each with several heads.
    """
    return (
        Probe("each sequence of a batch is for itself", batch),
        Probe("square tables in a batch stay apart", batch, SQUARE),
        Probe("so is each head", heads, gradient=True),
        Probe("float64 stays float64", single, dtype=torch.float64),
        Probe(
            "scores in the hundreds do not overflow",
            single,
            dtype=torch.float64,
            change=louder("q", "k", times=20.0),
        ),
        Probe(
            "the order in memory does not matter",
            batch,
            change=in_other_order,
        ),
    )


def scaled(q, k):
    """The scores as they should be."""
    return q @ k.mT / math.sqrt(q.shape[-1])


@mistake
def no_scale(q, k):
    """Your weights are too sharp, the more so the more features a key has.

    Cause: The scores go into softmax as they are.
    Cure: Divide them by the square root of the number of features first:
        q @ k.mT / math.sqrt(q.shape[-1]).
    Chapter: scaling
    """
    return (q @ k.mT).softmax(dim=-1)


@mistake
def divided_by_d(q, k):
    """Your weights are too flat, the more so the more features a key has.

    Cause: The scores are divided by d, not by its square root.
    Cure: Divide by math.sqrt(q.shape[-1]).
    Chapter: scaling
    """
    return (q @ k.mT / q.shape[-1]).softmax(dim=-1)


@mistake
def multiplied_by_the_root(q, k):
    """Your weights are nearly all 0 or 1.

    Cause: The scores are multiplied by √d.
    Cure: Divide them by it: q @ k.mT / math.sqrt(q.shape[-1]).
    Chapter: scaling
    """
    return (q @ k.mT * math.sqrt(q.shape[-1])).softmax(dim=-1)


@mistake
def scaled_by_the_number_of_keys(q, k):
    """Your weights grow flatter as there are more keys.

    Cause: The scores are divided by the square root of the number of keys.
    Cure: What makes scores large is the number of features they sum over,
        so divide by math.sqrt(q.shape[-1]).
    Chapter: scaling
    """
    return (q @ k.mT / math.sqrt(k.shape[-2])).softmax(dim=-1)


@mistake
def softmax_over_queries(q, k):
    """Your columns sum to one, and your rows do not.

    Cause: Softmax runs over the queries, dim=-2.
    Cure: Each query shares out one unit of attention among the keys:
        softmax(dim=-1).
    """
    return scaled(q, k).softmax(dim=-2)


@mistake
def softmax_over_the_whole_table(q, k):
    """Your whole table sums to one, so that each row has a small part of it.

    Cause: One softmax runs over all queries and keys together.
    Cure: Each query shares out a unit of its own: softmax(dim=-1).
    """
    return scaled(q, k).flatten(-2).softmax(-1).view(*scaled(q, k).shape)


@mistake
def softmax_over_axis_1(q, k):
    """Your rows sum to one for one sequence, and no longer in a batch.

    Cause: Softmax runs along dim=1, which is the keys' axis only as long as
        there are no axes before it.
    Cure: Count from the end: softmax(dim=-1).
    """
    return scaled(q, k).softmax(dim=1)


@mistake
def softmax_over_axis_0(q, k):
    """Your weights sum to one along the first axis, whatever it holds.

    Cause: Softmax runs along dim=0.
    Cure: The keys are the last axis: softmax(dim=-1).
    """
    return scaled(q, k).softmax(dim=0)


@mistake
def table_on_its_side(q, k):
    """You have a row for each key, and a column for each query.

    Cause: The product is k qᵀ.
    Cure: Queries come first: q @ k.mT.
    """
    return scaled(k, q).softmax(dim=-1)


@mistake
def all_axes_reversed(q, k):
    """It works for one sequence, but not for a batch of them.

    Cause: k.T turns round all axes, those in front as well.
    Cure: Exchange the last two only: k.mT.
    """
    return (q @ k.T / math.sqrt(q.shape[-1])).softmax(dim=-1)


@mistake
def first_axes_exchanged(q, k):
    """It works for one sequence, but not for a batch of them.

    Cause: k.transpose(0, 1) exchanges the first two axes, which are the
        last two only as long as there are no others.
    Cure: Count from the end: k.mT, or k.transpose(-2, -1).
    """
    return (q @ k.transpose(0, 1) / math.sqrt(q.shape[-1])).softmax(dim=-1)


@mistake
def divided_by_the_sum(q, k):
    """Your rows sum to one, but some of your weights are negative.

    Cause: The scores are divided by their sum, without an exponential.
    Cure: Use softmax(dim=-1): it makes all of them positive first.
    """
    return scaled(q, k) / scaled(q, k).sum(dim=-1, keepdim=True)


@mistake
def scale_after_softmax(q, k):
    """Your rows sum to 1/√d instead of one.

    Cause: The weights are divided by √d, after the softmax.
    Cure: Divide the scores, before it.
    """
    return (q @ k.mT).softmax(dim=-1) / math.sqrt(q.shape[-1])


@mistake
def no_softmax(q, k):
    """These are scores: they may be negative, and their rows sum to anything.

    Cause: There is no softmax.
    Cure: Put softmax(dim=-1) around the scaled scores.
    """
    return scaled(q, k)


@mistake
def not_normalised(q, k):
    """Your weights are positive, but their rows do not sum to one.

    Cause: Exponentials are only the first half of softmax.
    Cure: Divide each row by its sum, or let softmax(dim=-1) do both.
    """
    return scaled(q, k).exp()


@mistake
def sigmoid_instead_of_softmax(q, k):
    """Each of your weights is between 0 and 1, but rows do not sum to one.

    Cause: A sigmoid looks at each score alone.
    Cure: The keys compete with each other: softmax(dim=-1).
    """
    return scaled(q, k).sigmoid()


@mistake
def softmax_that_overflows(q, k):
    """You get NaN when scores are large.

    Cause: exp of 710 and more is infinite, even in float64, and infinity
        divided by infinity is not a number.
    Cure: Subtract each row's maximum before exp, or use softmax(dim=-1).
    """
    return not_normalised(q, k) / not_normalised(q, k).sum(-1, keepdim=True)


@mistake
def cosine_instead_of_product(q, k):
    """Your weights do not notice how long a query or a key is.

    Cause: They are made from cosines: q and k were normalised.
    Cure: Take the plain product, q @ k.mT, and divide by √d.
    """
    unit = F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).mT
    return unit.softmax(dim=-1)


@mistake
def query_scaled_in_place(q, k):
    """Your weights are right, but the caller's q is not what it was.

    Cause: An in-place operation such as q /= ... writes into the input.
    Cure: Make a new tensor: q = q / math.sqrt(q.shape[-1]).
    """
    q /= math.sqrt(q.shape[-1])
    return (q @ k.mT).softmax(dim=-1)


WEIGHTS = Exercise(
    "dot_product/weights",
    asks="the weights softmax(q kᵀ / √d), a row for each query",
    solution=attention_weights,
    probes=(
        Probe("it is softmax(q kᵀ / √d)", QK, gradient=True),
        Probe("rows are rows, when all axes are equally long", QK, SQUARE),
        Probe("a key with one feature needs no scale", QK, {"d": 1}),
        Probe("a single key gets all the weight", QK, {"n_k": 1}),
        *stays_apart(QK, QK_BATCH, QK_HEADS),
    ),
    mistakes=(
        no_scale,
        divided_by_d,
        multiplied_by_the_root,
        scaled_by_the_number_of_keys,
        softmax_over_queries,
        softmax_over_the_whole_table,
        softmax_over_axis_1,
        softmax_over_axis_0,
        table_on_its_side,
        all_axes_reversed,
        first_axes_exchanged,
        divided_by_the_sum,
        scale_after_softmax,
        no_softmax,
        not_normalised,
        sigmoid_instead_of_softmax,
        softmax_that_overflows,
        cosine_instead_of_product,
        query_scaled_in_place,
    ),
)
