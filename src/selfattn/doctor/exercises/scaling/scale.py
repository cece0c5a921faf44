"""`head_weights(q, k, n_heads)`: by how much to divide, in several heads."""

import math

import torch

from selfattn.doctor.exercise import Exercise, mistake, mistake_as
from selfattn.doctor.exercises.multihead import split
from selfattn.doctor.probes import Probe, in_other_order, louder
from selfattn.dot_product import attention_weights
from selfattn.multihead import split_heads


def three_or_one(sizes):
    """Three heads, where the width can be cut into three."""
    return math.gcd(3, sizes["d"])


def one_head(sizes):
    """A single head."""
    return 1


def every_feature(sizes):
    """As many heads as features, each one feature wide."""
    return sizes["d"]


WIDTHS = {"d": 15}
HEADS = {"q": "n_q d", "k": "n_k d", "n_heads": three_or_one}
ONE = {"q": "n_q d", "k": "n_k d", "n_heads": one_head}
NARROW = {"q": "n_q d", "k": "n_k d", "n_heads": every_feature}
BATCH = {"q": "batch n_q d", "k": "batch n_k d", "n_heads": three_or_one}


def weights_of(q, k, n_heads):
    """The solution, made of the package's parts."""
    return attention_weights(split_heads(q, n_heads), split_heads(k, n_heads))


def products(q, k, n_heads):
    """The undivided scores of each head, and the width of one."""
    q, k = split_heads(q, n_heads), split_heads(k, n_heads)
    return q @ k.mT, q.shape[-1]


@mistake
def width_of_the_model(q, k, n_heads):
    """Your weights are too flat, the more so the more heads there are.

    Cause: The scores are divided by the root of the model's width, but each
        is a sum over the features of one head.
    Cure: Divide by the root of q.shape[-1] after the cut into heads.
    """
    scores, _ = products(q, k, n_heads)
    return (scores / math.sqrt(q.shape[-1])).softmax(dim=-1)


@mistake
def no_scale(q, k, n_heads):
    """Your weights are too sharp, the more so the wider a head is.

    Cause: The scores are not divided by anything.
    Cure: Divide them by the root of one head's width before the softmax.
    """
    return products(q, k, n_heads)[0].softmax(dim=-1)


@mistake
def divided_twice(q, k, n_heads):
    """Your weights are too flat, the more so the wider a head is.

    Cause: The scores are divided by the width of a head: by d, or by √d
        twice, as when both the queries and a library's function are scaled.
    Cure: Divide by √d, once. PyTorch's scaled_dot_product_attention does it.
    """
    scores, d = products(q, k, n_heads)
    return (scores / d).softmax(dim=-1)


@mistake
def multiplied_by_the_root(q, k, n_heads):
    """Your weights are nearly all 0 or 1.

    Cause: The scores are multiplied by √d; perhaps divided by d ** -0.5.
    Cure: Divide by d ** 0.5, or multiply by d ** -0.5.
    """
    scores, d = products(q, k, n_heads)
    return (scores * math.sqrt(d)).softmax(dim=-1)


@mistake
def after_the_softmax(q, k, n_heads):
    """Your rows do not sum to one, and are too sharp.

    Cause: It is the weights that are divided by √d, not the scores.
    Cure: Divide before the softmax.
    """
    scores, d = products(q, k, n_heads)
    return scores.softmax(dim=-1) / math.sqrt(d)


@mistake
def number_of_heads(q, k, n_heads):
    """Your weights depend on how many heads there are, not on how wide.

    Cause: The scores are divided by the root of the number of heads.
    Cure: Divide by the root of one head's width, q.shape[-1] after the cut.
    """
    return (products(q, k, n_heads)[0] / math.sqrt(n_heads)).softmax(dim=-1)


@mistake
def number_of_keys(q, k, n_heads):
    """Your weights depend on how many keys there are in the wrong way.

    Cause: The scores are divided by the root of the number of keys.
    Cure: Divide by the root of one head's width: scores are sums over
        features, and softmax takes care of the keys.
    """
    scores, _ = products(q, k, n_heads)
    return (scores / math.sqrt(k.shape[-2])).softmax(dim=-1)


@mistake
def fourth_root(q, k, n_heads):
    """Your weights are too sharp, the more so the wider a head is.

    Cause: The scores are divided by the fourth root of the width. That would
        be right for the queries and for the keys, each.
    Cure: Divide the scores by √d, or both factors by d ** 0.25.
    """
    scores, d = products(q, k, n_heads)
    return (scores / d**0.25).softmax(dim=-1)


@mistake
def standardised(q, k, n_heads):
    """Every one of your rows is equally sharp, whatever its scores.

    Cause: Each row is divided by its own standard deviation. That makes the
        variance 1, but a query that cares can no longer be told from one
        that does not.
    Cure: Divide all rows by the same number, the root of the width.
    """
    scores, _ = products(q, k, n_heads)
    spread = scores.std(dim=-1, keepdim=True, correction=0)
    return (scores / spread.clamp(min=1e-6)).softmax(dim=-1)


@mistake
def lengths_taken_out(q, k, n_heads):
    """Your scores never leave -1 to 1.

    Cause: Each score is divided by the lengths of its query and key. That is
        the cosine; models that use it multiply by a learned number.
    Cure: Divide by the root of the width, and leave the lengths in.
    """
    q, k = split_heads(q, n_heads), split_heads(k, n_heads)
    q, k = (x / x.norm(dim=-1, keepdim=True) for x in (q, k))
    return (q @ k.mT).softmax(dim=-1)


@mistake
def softmax_over_queries(q, k, n_heads):
    """Your columns sum to one, and your rows do not.

    Cause: The softmax runs along dim=-2.
    Cure: Run it along the keys: softmax(dim=-1).
    """
    scores, d = products(q, k, n_heads)
    return (scores / math.sqrt(d)).softmax(dim=-2)


@mistake_as(split.cut_without_transpose)
def cut_without_transpose(q, k, n_heads):
    """The same of queries and keys."""
    q, k = (split.cut_without_transpose.answer(x, n_heads) for x in (q, k))
    return attention_weights(q, k)


@mistake
def keys_first(q, k, n_heads):
    """Your tables lie on their side: a column sums to one, and no row does.

    Cause: They are returned as (…, n_heads, n_k, n_q).
    Cure: Queries first: q @ k.mT, whose rows are queries.
    """
    return weights_of(q, k, n_heads).mT


SCALE = Exercise(
    "scaling/scale",
    asks="the weights of each head, (…, n_heads, n_q, n_k)",
    solution=weights_of,
    probes=(
        Probe("it is softmax(q kᵀ / √d) in each head", HEADS, WIDTHS),
        Probe("gradients flow to both", HEADS, WIDTHS, gradient=True),
        Probe("one head is as wide as the model", ONE, {"d": 7}),
        Probe("a head of one feature needs no division", NARROW, {"d": 3}),
        Probe("as many keys as queries", HEADS, {"d": 15, "n_k": 5}),
        Probe("each sequence of a batch is for itself", BATCH, WIDTHS),
        Probe("float64 stays float64", HEADS, WIDTHS, dtype=torch.float64),
        Probe(
            "scores in the hundreds do not overflow",
            HEADS,
            WIDTHS,
            dtype=torch.float64,
            change=louder("q", "k", times=20.0),
        ),
        Probe(
            "the order in memory does not matter",
            BATCH,
            WIDTHS,
            change=in_other_order,
        ),
    ),
    mistakes=(
        width_of_the_model,
        no_scale,
        divided_twice,
        multiplied_by_the_root,
        after_the_softmax,
        number_of_heads,
        number_of_keys,
        fourth_root,
        standardised,
        lengths_taken_out,
        softmax_over_queries,
        cut_without_transpose,
        keys_first,
    ),
)
