"""`multi_head(x, W_q, W_k, W_v, W_o, n_heads)`: the whole layer."""

import math

import torch

from selfattn.doctor.exercise import Exercise, mistake, mistake_as
from selfattn.doctor.exercises.multihead import split
from selfattn.doctor.exercises.multihead.split import (
    Sources,
    five_heads,
    one_head,
    three_heads,
)
from selfattn.doctor.probes import Inputs, Probe, in_other_order
from selfattn.dot_product import attention, attention_weights
from selfattn.multihead import merge_heads, split_heads

SQUARES = dict.fromkeys(("W_q", "W_k", "W_v", "W_o"), "d_model d_model")
ONE: Sources = {"x": "n d_model", **SQUARES, "n_heads": three_heads}
BATCH: Sources = {**ONE, "x": "batch n d_model"}
MORE: Sources = {**ONE, "x": "batch groups n d_model"}
SIZES = {"n": 7, "d_model": 15, "batch": 2, "groups": 3}
SQUARE = {"batch": 5, "n": 5, "d_model": 25}


def soft(inputs: Inputs) -> None:
    """Small queries and keys, so that no weight is nearly one."""
    inputs["W_q"] /= 4
    inputs["W_k"] /= 4


def soft_in_other_order(inputs: Inputs) -> None:
    """The same numbers in another order of memory."""
    soft(inputs)
    in_other_order(inputs)


def loud(inputs: Inputs) -> None:
    """Scores in the hundreds."""
    inputs["x"] *= 8


def projected(x, W_q, W_k, W_v, n_heads):
    """Queries, keys and values by heads."""
    return [split_heads(x @ W, n_heads) for W in (W_q, W_k, W_v)]


def multi_head(x, W_q, W_k, W_v, W_o, n_heads):
    """The solution."""
    q, k, v = projected(x, W_q, W_k, W_v, n_heads)
    return merge_heads(attention(q, k, v)) @ W_o


def heads_with(x, W_q, W_k, W_v, n_heads, scale=None, axis=-1):
    """Heads that attend with another scale, or a softmax elsewhere."""
    q, k, v = projected(x, W_q, W_k, W_v, n_heads)
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    return (q @ k.mT * scale).softmax(dim=axis) @ v


@mistake
def no_scale(x, W_q, W_k, W_v, W_o, n_heads):
    """Your weights are too sharp.

    Cause: The scores are not divided by √d_head.
    Cure: Divide by math.sqrt(q.shape[-1]) after the split.
    """
    return merge_heads(heads_with(x, W_q, W_k, W_v, n_heads, 1.0)) @ W_o


@mistake
def scaled_by_the_width_of_the_model(x, W_q, W_k, W_v, W_o, n_heads):
    """Your weights are too even, as soon as there is more than one head.

    Cause: The scores are divided by √d_model.
    Cure: A head's scores are sums over its own features, so √d_head.
    """
    scale = 1 / math.sqrt(x.shape[-1])
    return merge_heads(heads_with(x, W_q, W_k, W_v, n_heads, scale)) @ W_o


@mistake
def divided_by_d(x, W_q, W_k, W_v, W_o, n_heads):
    """Your weights are too even.

    Cause: The scores are divided by d_head, not by its root.
    Cure: math.sqrt(q.shape[-1]).
    """
    scale = n_heads / x.shape[-1]
    return merge_heads(heads_with(x, W_q, W_k, W_v, n_heads, scale)) @ W_o


@mistake
def softmax_over_queries(x, W_q, W_k, W_v, W_o, n_heads):
    """The columns of your weights sum to one, not the rows.

    Cause: softmax(dim=-2).
    Cure: Keys are the last axis of the scores: softmax(dim=-1).
    """
    heads = heads_with(x, W_q, W_k, W_v, n_heads, axis=-2)
    return merge_heads(heads) @ W_o


@mistake
def softmax_over_heads(x, W_q, W_k, W_v, W_o, n_heads):
    """The heads share out each pair of tokens among themselves.

    Cause: The softmax runs along the heads.
    Cure: Keys are the last axis of the scores: softmax(dim=-1).
    """
    heads = heads_with(x, W_q, W_k, W_v, n_heads, axis=-3)
    return merge_heads(heads) @ W_o


@mistake
def never_split(x, W_q, W_k, W_v, W_o, n_heads):
    """It is right for one head, and the same for any other number.

    Cause: Queries, keys and values are never cut into heads.
    Cure: Split each of them after its projection.
    """
    return attention(x @ W_q, x @ W_k, x @ W_v) @ W_o


def view_split(x, n_heads):
    """Heads taken in the order of memory."""
    *front, n, d_model = x.shape
    return x.reshape(*front, n_heads, n, d_model // n_heads)


def view_merge(x):
    """Tokens taken in the order of memory."""
    *front, n_heads, n, d = x.shape
    return x.reshape(*front, n, n_heads * d)


@mistake
def cut_without_transpose(x, W_q, W_k, W_v, W_o, n_heads):
    """The shape is right, but a head's rows are pieces of other tokens.

    Cause: x is reshaped to (…, n_heads, n, d_head) at once, in the order of
        memory.
    Cure: Cut the features first, unflatten(-1, (n_heads, -1)), then exchange
        tokens and heads: transpose(-3, -2).
    """
    q, k, v = (view_split(x @ W, n_heads) for W in (W_q, W_k, W_v))
    return merge_heads(attention(q, k, v)) @ W_o


@mistake
def merged_without_transpose(x, W_q, W_k, W_v, W_o, n_heads):
    """The heads are right, but a token gets pieces of other tokens' rows.

    Cause: (…, n_heads, n, d_head) is reshaped to (…, n, d_model) at once.
    Cure: transpose(-3, -2) first, then flatten(-2).
    """
    q, k, v = projected(x, W_q, W_k, W_v, n_heads)
    return view_merge(attention(q, k, v)) @ W_o


@mistake
def both_without_transpose(x, W_q, W_k, W_v, W_o, n_heads):
    """Split and merge undo each other, and still the heads are no heads.

    Cause: Both reshape in the order of memory. A round trip gives x back,
        which proves nothing: between the two, tokens and heads are mixed.
    Cure: unflatten and transpose going in, transpose and flatten coming out.
    """
    q, k, v = (view_split(x @ W, n_heads) for W in (W_q, W_k, W_v))
    return view_merge(attention(q, k, v)) @ W_o


@mistake_as(split.every_nth_feature)
def every_nth_feature(x, W_q, W_k, W_v, W_o, n_heads):
    q, k, v = (
        split.every_nth_feature(x @ W, n_heads) for W in (W_q, W_k, W_v)
    )
    return attention(q, k, v).movedim(-3, -1).flatten(-2) @ W_o


@mistake
def heads_attend_to_heads(x, W_q, W_k, W_v, W_o, n_heads):
    """No token looks at another: its own heads look at each other.

    Cause: The axes are (…, n, n_heads, d_head) when the scores are made.
    Cure: transpose(-3, -2) after cutting the features.
    """
    q, k, v = ((x @ W).unflatten(-1, (n_heads, -1)) for W in (W_q, W_k, W_v))
    return attention(q, k, v).flatten(-2) @ W_o


@mistake
def no_output_projection(x, W_q, W_k, W_v, W_o, n_heads):
    """Your output is that of the heads, side by side.

    Cause: W_o is never used.
    Cure: merged @ W_o.
    """
    q, k, v = projected(x, W_q, W_k, W_v, n_heads)
    return merge_heads(attention(q, k, v))


@mistake
def matrices_transposed(x, W_q, W_k, W_v, W_o, n_heads):
    """All four matrices are on their side.

    Cause: x @ W.T, or F.linear, which transposes.
    Cure: A token is a row here: x @ W.
    """
    return multi_head(x, W_q.mT, W_k.mT, W_v.mT, W_o.mT, n_heads)


@mistake
def output_projection_transposed(x, W_q, W_k, W_v, W_o, n_heads):
    """W_o is on its side.

    Cause: merged @ W_o.T.
    Cure: merged @ W_o.
    """
    return multi_head(x, W_q, W_k, W_v, W_o.mT, n_heads)


@mistake
def split_before_projecting(x, W_q, W_k, W_v, W_o, n_heads):
    """Each head sees its own piece of x, and not all of it.

    Cause: x is split, and each head multiplies its piece with its block of
        the matrix.
    Cure: Project first, then split: every head's query depends on all of x.
    """
    heads = split_heads(x, n_heads)
    d = heads.shape[-1]

    def blocks(W):
        cut = W.unflatten(0, (n_heads, d)).unflatten(-1, (n_heads, d))
        return cut.diagonal(dim1=0, dim2=2).movedim(-1, 0)

    q, k, v = (heads @ blocks(W) for W in (W_q, W_k, W_v))
    return merge_heads(attention(q, k, v)) @ W_o


@mistake
def queries_and_keys_exchanged(x, W_q, W_k, W_v, W_o, n_heads):
    """Rows and columns of your scores are exchanged.

    Cause: k @ q.mT, or W_q and W_k in each other's place.
    Cure: q @ k.mT, with q = x @ W_q.
    """
    return multi_head(x, W_k, W_q, W_v, W_o, n_heads)


@mistake
def values_not_projected(x, W_q, W_k, W_v, W_o, n_heads):
    """You average the tokens themselves.

    Cause: W_v is never used.
    Cure: v = x @ W_v, split like the others.
    """
    q, k, _ = projected(x, W_q, W_k, W_v, n_heads)
    return merge_heads(attention(q, k, split_heads(x, n_heads))) @ W_o


@mistake
def heads_averaged(x, W_q, W_k, W_v, W_o, n_heads):
    """It fails, or your heads have all become one.

    Cause: The heads' outputs are averaged, which leaves d_head features, and
        W_o takes d_model.
    Cure: Put them side by side.
    """
    q, k, v = projected(x, W_q, W_k, W_v, n_heads)
    return attention(q, k, v).mean(dim=-3) @ W_o


@mistake
def weights_averaged(x, W_q, W_k, W_v, W_o, n_heads):
    """All your heads look at the same tokens.

    Cause: The weights are averaged over the heads before they are used.
    Cure: Each head averages its values with its own weights.
    """
    q, k, v = projected(x, W_q, W_k, W_v, n_heads)
    mean = attention_weights(q, k).mean(dim=-3, keepdim=True)
    return merge_heads(mean @ v) @ W_o


@mistake
def input_added(x, W_q, W_k, W_v, W_o, n_heads):
    """Your output is too large by x.

    Cause: A residual path is added. It belongs to the block around the layer.
    Cure: Return the projection alone.
    """
    return x + multi_head(x, W_q, W_k, W_v, W_o, n_heads)


@mistake
def softmax_that_overflows(x, W_q, W_k, W_v, W_o, n_heads):
    """Large scores give NaN.

    Cause: exp meets the bare scores.
    Cure: Use softmax(dim=-1), which takes each row's maximum off first.
    """
    q, k, v = projected(x, W_q, W_k, W_v, n_heads)
    powers = (q @ k.mT / math.sqrt(q.shape[-1])).exp()
    return merge_heads(powers / powers.sum(-1, keepdim=True) @ v) @ W_o


@mistake
def detached(x, W_q, W_k, W_v, W_o, n_heads):
    """The output is right, but nothing could be learned through it.

    Cause: It is cut off from the inputs, by .detach(), .data, numpy or
        torch.no_grad(), so no gradient flows back.
    Cure: Stay with differentiable operations on tensors.
    """
    return multi_head(x, W_q, W_k, W_v, W_o, n_heads).detach()


ATTENTION = Exercise(
    "multihead/attention",
    asks="concatenated heads, softmax(q kᵀ / √d_head) v each, times W_o",
    solution=multi_head,
    probes=(
        Probe(
            "each head attends with its own features",
            ONE,
            SIZES,
            change=soft,
            gradient=True,
        ),
        Probe(
            "each sequence of a batch is for itself",
            BATCH,
            SIZES,
            change=soft,
            gradient=True,
        ),
        Probe("any axes may stand in front", MORE, SIZES, change=soft),
        Probe(
            "axes are told apart, when all are equally long",
            {**BATCH, "n_heads": five_heads},
            SQUARE,
            change=soft,
        ),
        Probe(
            "one head is one attention",
            {**BATCH, "n_heads": one_head},
            SIZES,
            change=soft,
        ),
        Probe(
            "a single token gets its own value",
            BATCH,
            {**SIZES, "n": 1},
            change=soft,
        ),
        Probe(
            "float64 stays float64",
            BATCH,
            SIZES,
            change=soft,
            dtype=torch.float64,
        ),
        Probe(
            "scores in the hundreds do not overflow",
            ONE,
            SIZES,
            change=loud,
            dtype=torch.float64,
        ),
        Probe(
            "the order in memory does not matter",
            BATCH,
            SIZES,
            change=soft_in_other_order,
        ),
    ),
    mistakes=(
        no_scale,
        scaled_by_the_width_of_the_model,
        divided_by_d,
        softmax_over_queries,
        softmax_over_heads,
        never_split,
        cut_without_transpose,
        merged_without_transpose,
        both_without_transpose,
        every_nth_feature,
        heads_attend_to_heads,
        no_output_projection,
        matrices_transposed,
        output_projection_transposed,
        split_before_projecting,
        queries_and_keys_exchanged,
        values_not_projected,
        heads_averaged,
        weights_averaged,
        input_added,
        softmax_that_overflows,
        detached,
    ),
)
