"""Attention with a feature map for its kernel, and how it goes wrong."""

import torch

from selfattn.doctor.exercise import mistake, mistake_as
from selfattn.doctor.exercises.dot_product import attention as functions
from selfattn.doctor.exercises.masks import causal as triangles
from selfattn.doctor.kinds.attention import mistakes as flags
from selfattn.doctor.kinds.efficient.experiments import measured
from selfattn.doctor.kinds.efficient.feature_maps import alike, over_features
from selfattn.doctor.kinds.efficient.mistakes import tables as masked
from selfattn.dot_product import attention
from selfattn.masks import causal_mask


def past(q, k):
    """The causal mask of some queries and keys."""
    return causal_mask(q.shape[-2], k.shape[-2])


def products(q, k, v, causal, kernel):
    """φ(q) φ(k)ᵀ, with zeros for what is hidden."""
    weights = kernel.of_q(q) @ kernel.of_k(k).mT
    return weights * past(q, k) if causal else weights


def shared(weights):
    """Weights divided by their sum; rows of zeros stay zeros."""
    total = weights.sum(dim=-1, keepdim=True)
    return weights / (total + (total == 0))


def linear(q, k, v, causal, kernel):
    """The reference, in its quadratic form."""
    weights = shared(products(q, k, v, causal, kernel))
    return (weights @ v.to(weights)).to(q.dtype)


@mistake
def not_divided(q, k, v, causal, kernel):
    """Your output grows with the number of keys.

    Cause: The sum φ(q) Σ φ(k) vᵀ is not divided by φ(q) Σ φ(k).
    Cure: Divide it, so that weights sum to one.
    Chapter: dot_product#each-row-is-an-average
    """
    return products(q, k, v, causal, kernel) @ v


@mistake
def divided_by_the_number_of_keys(q, k, v, causal, kernel):
    """Your rows sum to something, but not to one.

    Cause: The sum is divided by the number of keys, not by φ(q) Σ φ(k).
    Cure: Divide by the sum of the weights.
    Chapter: dot_product#each-row-is-an-average
    """
    return products(q, k, v, causal, kernel) @ v / k.shape[-2]


@mistake
def rows_sum_to_one_over_root_d(q, k, v, causal, kernel):
    """Your output is too short: its rows sum to 1/√d.

    Cause: It is divided by √d, which only softmax needs.
    Cure: Leave the scale out: it cancels where weights are shared out.
    Chapter: bench#a-window-and-no-softmax
    """
    return linear(q, k, v, causal, kernel) / q.shape[-1] ** 0.5


@mistake
def queries_without_features(q, k, v, causal, kernel):
    """Some of your weights are negative.

    Cause: The feature map is put on the keys alone.
    Cure: φ(q), too.
    Chapter: bench#a-window-and-no-softmax
    """
    weights = q @ kernel.of_k(k).mT
    return shared(weights * past(q, k) if causal else weights) @ v


@mistake
def keys_without_features(q, k, v, causal, kernel):
    """Some of your weights are negative, and their sum may be nearly zero.

    Cause: The feature map is put on the queries alone.
    Cure: φ(k), too.
    Chapter: bench#a-window-and-no-softmax
    """
    weights = kernel.of_q(q) @ k.mT
    return shared(weights * past(q, k) if causal else weights) @ v


@mistake
def relu_for_its_features(q, k, v, causal, kernel):
    """Where a query or key is negative, nothing is seen and nothing learned.

    Cause: relu(x) where another feature map is claimed.
    Cure: The one you claim, such as elu(x) + 1.
    Chapter: bench#a-window-and-no-softmax
    """
    return linear(q, k, v, causal, alike(torch.relu))


@mistake
def softmax_for_its_features(q, k, v, causal, kernel):
    """Your weights are flatter than they should be.

    Cause: A softmax over the features stands for the feature map.
    Cure: The one you claim, such as elu(x) + 1.
    Chapter: bench#a-window-and-no-softmax
    """
    return linear(q, k, v, causal, alike(over_features))


@mistake
def ordinary_attention(q, k, v, causal, kernel):
    """It is softmax attention, and no kernel of a feature map.

    Cause: The scores go through softmax.
    Cure: If that is what you want, leave the kernel out of your claim.
    Chapter: bench#a-window-and-no-softmax
    """
    return attention(q, k, v, causal=causal)


@mistake
def denominator_of_the_whole_sequence(q, k, v, causal, kernel):
    """Causal, your first outputs are too faint, and know how long it will be.

    Cause: The running sum of values is divided by the sum over all keys.
    Cure: Let the denominator run along, too: cumsum over φ(k).
    Chapter: masks#two-tests-for-a-leak
    """
    total = products(q, k, v, False, kernel).sum(dim=-1, keepdim=True)
    return products(q, k, v, causal, kernel) @ v / total


@mistake
def numerator_of_the_whole_sequence(q, k, v, causal, kernel):
    """Causal, your first outputs are far too large, and see the future.

    Cause: The sum over all values is divided by the running sum of keys.
    Cure: Let the numerator run along, too: cumsum over φ(k) vᵀ.
    Chapter: masks#two-tests-for-a-leak
    """
    weights = products(q, k, v, causal, kernel)
    total = weights.sum(dim=-1, keepdim=True)
    return products(q, k, v, False, kernel) @ v / (total + (total == 0))


@mistake
def a_small_number_added(q, k, v, causal, kernel):
    """Your rows sum to a little less than one.

    Cause: A number such as 0.1 is added to the features or the denominator,
        against division by zero, and it is not small beside them.
    Cure: Add nothing; treat a sum of exactly zero on its own.
    Chapter: dot_product#each-row-is-an-average
    """
    weights = products(q, k, v, causal, kernel)
    return weights @ v / (weights.sum(dim=-1, keepdim=True) + 0.1)


@mistake_as(flags.causal_flag_ignored)
def causal_flag_ignored(q, k, v, causal, kernel):
    return linear(q, k, v, False, kernel)


def under_another(table, q, k, v, causal, kernel):
    """Linear attention whose causal flag stands for another table."""
    weights = kernel.of_q(q) @ kernel.of_k(k).mT
    if causal:
        weights = weights * table(q.shape[-2], k.shape[-2])
    return shared(weights) @ v


@mistake_as(triangles.first_on_first)
def first_on_first(q, k, v, causal, kernel):
    return under_another(triangles.first_on_first, q, k, v, causal, kernel)


@mistake_as(triangles.not_itself)
def not_itself(q, k, v, causal, kernel):
    return under_another(triangles.not_itself, q, k, v, causal, kernel)


@mistake_as(functions.computed_in_float32)
def computed_in_float32(q, k, v, causal, kernel):
    output = linear(q.float(), k.float(), v.float(), causal, kernel)
    return output.to(q.dtype)


@mistake_as(functions.detached)
def detached(q, k, v, causal, kernel):
    return linear(q, k, v, causal, kernel).detach()


@mistake_as(masked.the_whole_table_is_made)
@measured
def the_whole_table_is_made(q, k, v, causal, kernel):
    """All weights are made before they are summed up."""
    return linear(q, k, v, causal, kernel)


MISTAKES = (
    not_divided,
    divided_by_the_number_of_keys,
    rows_sum_to_one_over_root_d,
    queries_without_features,
    keys_without_features,
    relu_for_its_features,
    softmax_for_its_features,
    ordinary_attention,
    denominator_of_the_whole_sequence,
    numerator_of_the_whole_sequence,
    a_small_number_added,
    causal_flag_ignored,
    first_on_first,
    not_itself,
    computed_in_float32,
    detached,
    the_whole_table_is_made,
)
