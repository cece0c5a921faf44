"""How mechanisms with weights of their own go wrong.

Each mistake is a function of q, k, v, whether later keys are hidden, and
which keys are real; like `own`, which is right.
"""

import math

import torch
import torch.nn.functional as F

from selfattn.doctor.exercise import mistake, mistake_as
from selfattn.doctor.exercises.dot_product import attention as functions
from selfattn.doctor.exercises.masks import causal as triangles
from selfattn.doctor.kinds.attention import mistakes as flags
from selfattn.doctor.kinds.efficient.experiments import measured
from selfattn.doctor.kinds.efficient.mistakes import kernels, tiles
from selfattn.doctor.kinds.efficient.mistakes import tables as masked
from selfattn.doctor.kinds.layer.mistakes import masks as layers
from selfattn.dot_product import attention
from selfattn.efficient.linear import elu_plus_one
from selfattn.efficient.performer import random_directions
from selfattn.masks import causal_mask


def seen(q, k, causal, padding):
    """Which keys each query may see, as a mask that broadcasts."""
    mask = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool)
    if causal:
        mask = causal_mask(q.shape[-2], k.shape[-2])
    return mask if padding is None else mask & by_key(padding, k).mT


def by_key(padding, k):
    """A mask (batch, n_k) with the axes of keys, (batch, …, n_k, 1)."""
    return padding.view(len(k), *[1] * (k.ndim - 3), -1, 1)


def own(q, k, v, causal, padding):
    """The reference: a kernel, as good as any."""
    return averaged(products(q, k), v, seen(q, k, causal, padding))


def products(q, k):
    """The weights of a kernel before they are shared out."""
    q, k = q.float(), k.float()
    return elu_plus_one(q) @ elu_plus_one(k).mT


def averaged(weights, v, mask):
    """Values averaged by the weights that a mask leaves."""
    weights = kernels.shared(weights * mask)
    return (weights @ v.float()).to(v.dtype)


@mistake
def nearly_the_plain_mean(q, k, v, causal, padding):
    """The louder queries and keys are, the more alike are all outputs.

    Cause: A small number such as 1e-4 is added to the features, which for
        loud queries and keys are far smaller. Then all weights are equal,
        and the output is the plain mean of the values.
    Cure: Add nothing; treat a sum of exactly zero on its own. Where the
        estimate is bad, say so, and take another mechanism.
    Chapter: dot_product#a-weight-compares-within-a-row
    Thread: https://github.com/lucidrains/performer-pytorch/issues/69
    """
    gaps = torch.cdist(q.float(), k.float()) ** 2 / math.sqrt(q.shape[-1])
    weights = (-gaps / 2).exp() + 1e-4
    return averaged(weights, v, seen(q, k, causal, padding))


def features(x, axes):
    """FAVOR+'s features, divided by the largest along some axes, and more."""
    x = x.float() / x.shape[-1] ** 0.25
    along = x @ random_directions(32, x.shape[-1]).mT
    largest = along.amax(dim=axes, keepdim=True)
    half = x.square().sum(dim=-1, keepdim=True) / 2
    return (along - half - largest).exp() + 1e-4


@mistake
def later_keys_are_felt(q, k, v, causal, padding):
    """Later keys move earlier outputs, though their values are not seen.

    Cause: The features of keys are divided by the largest of all positions,
        and a small number is added: the larger a later key is, the less is
        left of the earlier ones beside that number.
    Cure: Divide by the largest of the keys that a query sees; add nothing.
    Chapter: masks#two-tests-for-a-leak
    Thread: https://github.com/lucidrains/performer-pytorch/issues/82
    """
    weights = features(q, -1) @ features(k, (-1, -2)).mT
    return averaged(weights, v, seen(q, k, causal, padding))


@mistake
def one_maximum_for_the_whole_batch(q, k, v, causal, padding):
    """What one sequence says moves the outputs of the others.

    Cause: The features of keys are divided by the largest of the batch, and
        a small number is added.
    Cure: Divide by the largest of each sequence, of the keys that are seen.
    Chapter: masks#two-tests-for-a-leak
    """
    weights = features(q, -1) @ features(k, tuple(range(k.ndim))).mT
    return averaged(weights, v, seen(q, k, causal, padding))


@mistake
def later_keys_choose_what_is_seen(q, k, v, causal, padding):
    """Later keys move earlier outputs: they decide which past is seen.

    Cause: All keys are sorted, by a hash or a cluster, and cut into pieces;
        where a piece ends depends on how many later ones come before.
    Cure: Sort what a query may see, or bear it knowingly: no later value
        comes through, but a model that writes on will see another past.
    Chapter: masks#two-tests-for-a-leak
    """
    hashed = (k @ random_directions(4, k.shape[-1]).mT.to(k)).argmax(dim=-1)
    piece = hashed.argsort(stable=True).argsort() // 4
    of_query = piece[..., piece.shape[-1] - q.shape[-2] :, None]
    behind = of_query - piece[..., None, :]
    near = (behind == 0) | (behind == 1)
    return attention(q, k, v, mask=seen(q, k, causal, padding) & near)


@mistake
def exponentials_as_they_are(q, k, v, causal, padding):
    """Large keys give NaN, and keys far below zero give next to nothing.

    Cause: exp(k) is taken of the keys as they are, and the denominator is
        not let below a number such as 1e-3.
    Cure: Subtract the largest key first, feature by feature; it cancels out.
    Chapter: dot_product#the-overflow
    """
    weights = q.float().softmax(dim=-1) / math.sqrt(q.shape[-1])
    weights = weights @ k.float().exp().mT
    weights = weights.masked_fill(~seen(q, k, causal, padding), 0.0)
    total = weights.sum(dim=-1, keepdim=True).clamp(min=1e-3)
    return (weights @ v.float() / total).to(v.dtype)


@mistake
def own_block_not_seen(q, k, v, causal, padding):
    """Causal, a token sees neither itself nor what came just before it.

    Cause: The text is cut into blocks, and each sees the blocks before it.
        Its own is left out, since a part of it lies in the future.
    Cure: Mask within the own block.
    Chapter: masks#a-mask-is-a-comparison-of-positions
    """
    mask = seen(q, k, causal, padding)
    if causal:
        i = torch.arange(q.shape[-2])[:, None] + k.shape[-2] - q.shape[-2]
        mask = mask & (torch.arange(k.shape[-2]) // 4 < i // 4)
    return averaged(products(q, k), v, mask)


@mistake
def padded_keys_stay_in_the_denominator(q, k, v, causal, padding):
    """Padded, your weights sum to less than one, by what the padding holds.

    Cause: The values of padding are set to zero, its keys still count.
    Cure: Set the features of padded keys to zero, too.
    Chapter: masks#masking-too-late
    Thread: https://github.com/fla-org/flash-linear-attention/pull/1266
    """
    if padding is not None:
        v = v * by_key(padding, v)
    return averaged(products(q, k), v, seen(q, k, causal, None))


@mistake
def padding_written_into_keys_and_values(q, k, v, causal, padding):
    """The caller's keys and values are not what they were.

    Cause: masked_fill_ writes into the input; its name ends in _.
    Cure: k.masked_fill(...), which makes a new tensor.
    Chapter: masks
    """
    output = own(q, k, v, causal, padding)
    if padding is not None:
        padded = ~by_key(padding, k)
        k.data.masked_fill_(padded, torch.finfo(k.dtype).min)
        v.data.masked_fill_(padded, 0.0)
    return output


@mistake_as(layers.padding_ignored)
def padding_ignored(q, k, v, causal, padding):
    return own(q, k, v, causal, None)


@mistake_as(functions.mask_upside_down)
def mask_upside_down(q, k, v, causal, padding):
    return own(q, k, v, causal, None if padding is None else ~padding)


@mistake_as(kernels.rows_sum_to_one_over_root_d)
def rows_sum_to_one_over_root_d(q, k, v, causal, padding):
    return own(q, k, v, causal, padding) / math.sqrt(q.shape[-1])


@mistake_as(kernels.not_divided)
def not_divided(q, k, v, causal, padding):
    weights = products(q, k) * seen(q, k, causal, padding)
    return (weights @ v.float()).to(v.dtype)


@mistake_as(kernels.divided_by_the_number_of_keys)
def divided_by_the_number_of_keys(q, k, v, causal, padding):
    weights = products(q, k) * seen(q, k, causal, padding)
    return (weights @ v.float() / k.shape[-2]).to(v.dtype)


@mistake_as(kernels.denominator_of_the_whole_sequence)
def denominator_of_the_whole_sequence(q, k, v, causal, padding):
    weights = products(q, k) * seen(q, k, False, padding)
    shared = weights / weights.sum(dim=-1, keepdim=True)
    shared = shared * seen(q, k, causal, None)
    return (shared @ v.float()).to(v.dtype)


@mistake_as(kernels.numerator_of_the_whole_sequence)
def numerator_of_the_whole_sequence(q, k, v, causal, padding):
    weights = products(q, k) * seen(q, k, False, padding)
    among = weights * seen(q, k, causal, None)
    total = among.sum(dim=-1, keepdim=True)
    return (weights @ v.float() / (total + (total == 0))).to(v.dtype)


@mistake_as(tiles.last_tile_left_out)
def last_tile_left_out(q, k, v, causal, padding):
    n = k.shape[-2]
    kept = torch.arange(n) < (n // 4 * 4 or n)
    mask = seen(q, k, causal, padding) & kept
    return averaged(products(q, k), v, mask)


@mistake_as(triangles.not_itself)
def not_itself(q, k, v, causal, padding):
    mask = seen(q, k, causal, padding)
    if causal:
        mask = mask & triangles.not_itself(q.shape[-2], k.shape[-2])
    return averaged(products(q, k), v, mask)


@mistake_as(flags.causal_flag_ignored)
def causal_flag_ignored(q, k, v, causal, padding):
    return own(q, k, v, False, padding)


@mistake_as(layers.not_causal)
def not_causal(q, k, v, causal, padding):
    return own(q, k, v, False, padding)


@mistake_as(functions.detached)
def detached(q, k, v, causal, padding):
    return own(q, k, v, causal, padding).detach()


@mistake_as(flags.output_in_float32)
def output_in_float32(q, k, v, causal, padding):
    return own(q, k, v, causal, padding).float()


@mistake_as(flags.dropout_that_never_ends)
def dropout_that_never_ends(q, k, v, causal, padding):
    weights = products(q, k) * seen(q, k, causal, padding)
    rows = F.dropout(kernels.shared(weights), 0.1)
    return (rows @ v.float()).to(v.dtype)


@mistake_as(masked.the_whole_table_is_made)
@measured
def the_whole_table_is_made(q, k, v, causal, padding):
    """All weights are made before they are summed up."""
    return own(q, k, v, causal, padding)


MISTAKES = (
    nearly_the_plain_mean,
    later_keys_are_felt,
    one_maximum_for_the_whole_batch,
    later_keys_choose_what_is_seen,
    exponentials_as_they_are,
    own_block_not_seen,
    padded_keys_stay_in_the_denominator,
    padding_written_into_keys_and_values,
    padding_ignored,
    mask_upside_down,
    rows_sum_to_one_over_root_d,
    not_divided,
    divided_by_the_number_of_keys,
    denominator_of_the_whole_sequence,
    numerator_of_the_whole_sequence,
    last_tile_left_out,
    not_itself,
    causal_flag_ignored,
    not_causal,
    detached,
    output_in_float32,
    dropout_that_never_ends,
    the_whole_table_is_made,
)
