"""The mistakes that layers make with projections, scores and heads."""

import math

import torch.nn.functional as F

from selfattn.doctor.exercise import mistake, mistake_as
from selfattn.doctor.exercises.dot_product import attention as functions
from selfattn.doctor.exercises.dot_product import weights as tables
from selfattn.doctor.exercises.multihead import attention as whole
from selfattn.doctor.exercises.multihead import split
from selfattn.doctor.exercises.scaling import scale as scaling
from selfattn.doctor.kinds.attention import mistakes as flags
from selfattn.doctor.kinds.layer.reference import (
    Masks,
    allowed,
    heads,
    joined,
    layer,
    scores,
)
from selfattn.dot_product import attention, masked_softmax


def hidden(table, x, context, masks, fill=-math.inf):
    """Scores, with another number where a mask forbids."""
    mask = allowed(masks, x, context)
    return table if mask is None else table.masked_fill(~mask, fill)


def with_scale(parts, x, context, masks, scale):
    """Attention with another scale."""
    q, k, v = heads(parts, x, context)
    weights = masked_softmax(q @ k.mT * scale, allowed(masks, x, context))
    return joined(parts, weights @ v)


@mistake_as(whole.no_scale)
def no_scale(parts, x, context, masks):
    return with_scale(parts, x, context, masks, 1.0)


@mistake_as(whole.scaled_by_the_width_of_the_model)
def scaled_by_the_width_of_the_model(parts, x, context, masks):
    scale = 1 / math.sqrt(parts.q.W.shape[-1])
    return with_scale(parts, x, context, masks, scale)


@mistake_as(whole.divided_by_d)
def divided_by_d(parts, x, context, masks):
    scale = parts.n_heads / parts.q.W.shape[-1]
    return with_scale(parts, x, context, masks, scale)


@mistake_as(tables.multiplied_by_the_root)
def multiplied_by_the_root(parts, x, context, masks):
    scale = math.sqrt(parts.q.W.shape[-1] / parts.n_heads)
    return with_scale(parts, x, context, masks, scale)


@mistake_as(tables.scaled_by_the_number_of_keys)
def scaled_by_the_number_of_keys(parts, x, context, masks):
    scale = 1 / math.sqrt(context.shape[-2])
    return with_scale(parts, x, context, masks, scale)


@mistake_as(scaling.number_of_heads)
def number_of_heads(parts, x, context, masks):
    return with_scale(parts, x, context, masks, parts.n_heads**-0.5)


def softmax_along(parts, x, context, masks, axis):
    """Attention whose softmax runs along another axis."""
    q, k, v = heads(parts, x, context)
    weights = hidden(scores(q, k), x, context, masks).softmax(dim=axis)
    return joined(parts, weights.nan_to_num() @ v)


@mistake_as(whole.softmax_over_queries)
def softmax_over_queries(parts, x, context, masks):
    return softmax_along(parts, x, context, masks, -2)


@mistake_as(whole.softmax_over_heads)
def softmax_over_heads(parts, x, context, masks):
    return softmax_along(parts, x, context, masks, 1)


@mistake_as(whole.never_split)
def never_split(parts, x, context, masks):
    one = parts._replace(n_heads=1, n_kv_heads=1)
    return layer(one, x, context, masks)[0]


@mistake_as(whole.cut_without_transpose)
def cut_without_transpose(parts, x, context, masks):
    q, k, v = (
        whole.view_split(y, n)
        for y, n in (
            (parts.q(x), parts.n_heads),
            (parts.k(context), parts.n_kv_heads),
            (parts.v(context), parts.n_kv_heads),
        )
    )
    output = attention(q, k, v, mask=allowed(masks, x, context))
    return joined(parts, output)


@mistake_as(whole.merged_without_transpose)
def merged_without_transpose(parts, x, context, masks):
    q, k, v = heads(parts, x, context)
    output = attention(q, k, v, mask=allowed(masks, x, context))
    merged = whole.view_merge(output)
    return merged if parts.out is None else parts.out(merged)


@mistake_as(whole.both_without_transpose)
def both_without_transpose(parts, x, context, masks):
    q = whole.view_split(parts.q(x), parts.n_heads)
    k = whole.view_split(parts.k(context), parts.n_kv_heads)
    v = whole.view_split(parts.v(context), parts.n_kv_heads)
    output = attention(q, k, v, mask=allowed(masks, x, context))
    merged = whole.view_merge(output)
    return merged if parts.out is None else parts.out(merged)


@mistake_as(split.every_nth_feature)
def every_nth_feature(parts, x, context, masks):
    q, k, v = (
        split.every_nth_feature(y, n)
        for y, n in (
            (parts.q(x), parts.n_heads),
            (parts.k(context), parts.n_kv_heads),
            (parts.v(context), parts.n_kv_heads),
        )
    )
    output = attention(q, k, v, mask=allowed(masks, x, context))
    merged = output.movedim(-3, -1).flatten(-2)
    return merged if parts.out is None else parts.out(merged)


@mistake_as(whole.heads_attend_to_heads)
def heads_attend_to_heads(parts, x, context, masks):
    cut = (parts.n_heads, -1)
    q = parts.q(x).unflatten(-1, cut)
    k, v = (p(context).unflatten(-1, cut) for p in (parts.k, parts.v))
    merged = attention(q, k, v).flatten(-2)
    return merged if parts.out is None else parts.out(merged)


@mistake_as(whole.no_output_projection)
def no_output_projection(parts, x, context, masks):
    return layer(parts._replace(out=None), x, context, masks)[0]


@mistake_as(whole.queries_and_keys_exchanged)
def queries_and_keys_exchanged(parts, x, context, masks):
    turned = parts._replace(q=parts.k, k=parts.q)
    return layer(turned, x, context, masks)[0]


@mistake_as(whole.values_not_projected)
def values_not_projected(parts, x, context, masks):
    q, k, v = heads(parts, x, context)
    v = context.unflatten(-1, (parts.n_heads, -1)).transpose(1, 2)
    mask = allowed(masks, x, context)
    return joined(parts, attention(q, k, v, mask=mask))


@mistake_as(whole.weights_averaged)
def weights_averaged(parts, x, context, masks):
    q, k, v = heads(parts, x, context)
    weights = masked_softmax(scores(q, k), allowed(masks, x, context))
    return joined(parts, weights.mean(1, keepdim=True) @ v)


@mistake_as(whole.input_added)
def input_added(parts, x, context, masks):
    return x + layer(parts, x, context, masks)[0]


@mistake_as(whole.softmax_that_overflows)
def softmax_that_overflows(parts, x, context, masks):
    q, k, v = heads(parts, x, context)
    powers = hidden(scores(q, k), x, context, masks).exp()
    total = powers.sum(-1, keepdim=True)
    return joined(parts, powers / (total + (total == 0)) @ v)


@mistake_as(whole.detached)
def detached(parts, x, context, masks):
    return layer(parts, x, context, masks)[0].detach()


@mistake_as(flags.dropout_that_never_ends)
def dropout_that_never_ends(parts, x, context, masks):
    q, k, v = heads(parts, x, context)
    weights = masked_softmax(scores(q, k), allowed(masks, x, context))
    return joined(parts, F.dropout(weights, 0.1) @ v)


@mistake_as(tables.no_softmax)
def no_softmax(parts, x, context, masks):
    q, k, v = heads(parts, x, context)
    return joined(parts, hidden(scores(q, k), x, context, masks, 0.0) @ v)


@mistake_as(functions.computed_in_float32)
def computed_in_float32(parts, x, context, masks):
    return layer(parts, x.float(), context.float(), masks)[0].to(x.dtype)


@mistake
def matrices_of_the_input_transposed(parts, x, context, masks):
    """It fails as soon as a projection is not square.

    Cause: Queries, keys and values are x W where the matrix was made for
        x Wᵀ, as in nn.Linear.
    Cure: See which axis of the matrix is the input's, and multiply there.
    Chapter: multihead
    Thread: https://github.com/rasbt/LLMs-from-scratch/issues/857
    """
    turned = {
        name: getattr(parts, name)._replace(W=getattr(parts, name).W.mT)
        for name in ("q", "k", "v")
    }
    return layer(parts._replace(**turned), x, context, masks)[0]


@mistake
def biases_forgotten(parts, x, context, masks):
    """Your output is right as long as all biases are zero, as at the start.

    Cause: The projections have biases, and they are not added.
    Cure: Call the projections, or F.linear(x, weight, bias).
    Chapter: multihead
    """
    q, k, v = (part._replace(b=None) for part in parts[:3])
    bare = parts._replace(q=q, k=k, v=v)
    return layer(bare, x, context, masks)[0]


@mistake
def keys_are_the_values(parts, x, context, masks):
    """You average the keys.

    Cause: The projection of the keys is used for the values, too.
    Cure: v = W_v(context).
    Chapter: multihead
    """
    return layer(parts._replace(v=parts.k), x, context, masks)[0]


@mistake
def batch_and_tokens_exchanged(parts, x, context, masks):
    """The n-th tokens of all sequences look at each other.

    Cause: The layer takes the tokens' axis for the batch, as
        nn.MultiheadAttention does unless it is told batch_first=True.
    Cure: batch_first=True, or transpose(0, 1) going in and coming out.
    Chapter: multihead
    """
    x, context = x.transpose(0, 1), context.transpose(0, 1)
    return layer(parts, x, context, Masks())[0].transpose(0, 1)


MISTAKES = (
    no_scale,
    scaled_by_the_width_of_the_model,
    divided_by_d,
    multiplied_by_the_root,
    scaled_by_the_number_of_keys,
    number_of_heads,
    softmax_over_queries,
    softmax_over_heads,
    never_split,
    cut_without_transpose,
    merged_without_transpose,
    both_without_transpose,
    every_nth_feature,
    heads_attend_to_heads,
    no_output_projection,
    queries_and_keys_exchanged,
    values_not_projected,
    weights_averaged,
    input_added,
    softmax_that_overflows,
    detached,
    dropout_that_never_ends,
    no_softmax,
    computed_in_float32,
    matrices_of_the_input_transposed,
    biases_forgotten,
    keys_are_the_values,
    batch_and_tokens_exchanged,
)
