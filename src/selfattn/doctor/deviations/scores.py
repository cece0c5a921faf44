"""What is done otherwise with queries, keys, scores, weights and values."""

import math

import torch
import torch.nn.functional as F

from selfattn.doctor.deviations.design import Deviation, softmax, unchanged
from selfattn.doctor.exercise import mistake
from selfattn.doctor.exercises.dot_product import attention as functions
from selfattn.doctor.exercises.dot_product import weights
from selfattn.doctor.exercises.scaling import scale as scaling


def scaled(known, by):
    """Another number that the scores are multiplied by."""
    return Deviation({"scale": by}, known)


@mistake
def the_scale_is_applied_twice():
    """Your weights are too even.

    Cause: The scores are divided by √d twice: q or k was scaled before.
    Cure: Once, in one place.
    Chapter: scaling
    """


@mistake
def scaled_by_the_width_of_the_model():
    """Your weights are too even, the more so the more heads there are.

    Cause: The scores are divided by √d_model; each is a sum over the
        features of one head.
    Cure: The square root of the width of a head.
    Chapter: multihead
    """


@mistake
def softmax_over_heads():
    """The weights of all heads together sum to one.

    Cause: Softmax runs over the axis of the heads.
    Cure: Over the keys, dim=-1.
    Chapter: multihead
    """


@mistake
def softmax_over_the_batch():
    """The weights of all texts together sum to one.

    Cause: Softmax runs along the first axis, dim=0.
    Cure: Over the keys, dim=-1.
    Chapter: dot_product
    """


@mistake
def queries_as_keys():
    """Every token looks for tokens that ask what it asks.

    Cause: The scores are q qᵀ: the keys are not used.
    Cure: q @ k.mT.
    Chapter: dot_product
    """


@mistake
def keys_as_queries():
    """The queries are not used.

    Cause: The scores are k kᵀ.
    Cure: q @ k.mT.
    Chapter: dot_product
    """


@mistake
def keys_are_the_values():
    """You average the keys.

    Cause: What should be values are keys.
    Cure: weights @ v.
    Chapter: dot_product
    """


@mistake
def heads_in_another_order():
    """Each head averages the values of another head.

    Cause: Queries, keys and values do not have their heads in one order.
    Cure: One order for all three.
    Chapter: multihead
    """


@mistake
def values_of_the_first_sequence():
    """All texts of a batch get the values of the first.

    Cause: An axis of the values was reduced to its first entry.
    Cure: Keep the batch: weights @ v works on all sequences at once.
    Chapter: dot_product
    """


@mistake
def keys_of_the_first_sequence():
    """All sequences of a batch look into the first.

    Cause: An axis of the keys was reduced to its first entry.
    Cure: Keep the batch: q @ k.mT works on all sequences at once.
    Chapter: dot_product
    """


@mistake
def one_head_for_all():
    """All heads look with the keys of the first.

    Cause: The axis of the heads was reduced to its first entry.
    Cure: A head has its own keys.
    Chapter: multihead
    """


@mistake
def weights_averaged():
    """All heads have the same weights.

    Cause: The weights are averaged over the heads before they meet values.
    Cure: Each head averages its values with its own weights.
    Chapter: multihead
    """


@mistake
def minus_the_product():
    """It looks for what it does not want.

    Cause: The sign of the scores, or of the scale, is turned.
    Cure: softmax(q kᵀ / √d).
    Chapter: dot_product
    """


@mistake
def computed_in_half_precision():
    """Only the first three digits of your output are right.

    Cause: Something in between is float16 or bfloat16.
    Cure: Leave out .half(), and make new tensors with the input's dtype.
    Chapter: dot_product
    """


@mistake
def softmax_over_all_at_once():
    """All weights of a text together sum to one.

    Cause: One softmax runs over queries and keys together.
    Cure: Over the keys, dim=-1: one for each query.
    Chapter: dot_product
    """


def first_texts_keys(q, k, v):
    """The keys of the first text, for all."""
    return q, k[:1].expand_as(k) if k.ndim > 2 else k, v


def first_texts_values(q, k, v):
    """The values of the first text, for all."""
    return q, k, v[:1].expand_as(v) if v.ndim > 2 else v


def first_texts_both(q, k, v):
    """Keys and values of the first text, for all."""
    return (*first_texts_keys(q, k, v)[:2], first_texts_values(q, k, v)[2])


def first_heads_keys(q, k, v):
    """The keys of the first head, for all."""
    return q, k[:, :1].expand_as(k) if k.ndim > 3 else k, v


def first_heads_both(q, k, v):
    """Keys and values of the first head, for all."""
    k, v = (x[:, :1].expand_as(x) if x.ndim > 3 else x for x in (k, v))
    return q, k, v


def other_heads(q, k, v):
    """The heads of the keys from last to first."""
    return q, k.flip(-3) if k.ndim > 3 else k, v


def other_heads_of_both(q, k, v):
    """The heads of keys and values from last to first."""
    k, v = (x.flip(-3) if x.ndim > 3 else x for x in (k, v))
    return q, k, v


def other_heads_of_values(q, k, v):
    """The heads of the values from last to first."""
    return q, k, v.flip(-3) if v.ndim > 3 else v


def along(axis, mended=True):
    """A softmax along another axis, where that is none for the keys."""

    def weigh(scores):
        if axis == -3 and scores.ndim < 4:
            return softmax(scores)
        weights = scores.softmax(dim=axis)
        return weights.nan_to_num() if mended else weights

    return weigh


def over_the_table(scores):
    """One softmax over queries and keys together."""
    return scores.flatten(-2).softmax(-1).view_as(scores).nan_to_num()


def overflowing(scores):
    """A softmax whose largest score is not taken off."""
    powers = scores.exp()
    total = powers.sum(dim=-1, keepdim=True)
    return powers / (total + (total == 0))


def overflowing_or_empty(scores):
    """The same, whose rows without a key are 0/0."""
    powers = scores.exp()
    return powers / powers.sum(dim=-1, keepdim=True)


def not_divided(scores):
    """Exponentials that are not divided by their sum."""
    return (scores - scores.amax(-1, keepdim=True)).exp().nan_to_num()


def undivided(scores):
    """The same, without taking off the largest score."""
    return scores.exp()


def cosine(q, k):
    """The cosine of the angle between query and key."""
    return F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).mT


def of_all_heads(weights, allowed=None):
    """Weights, averaged over the heads."""
    if weights.ndim < 4:
        return weights
    return weights.mean(-3, keepdim=True).expand_as(weights)


def rounded(dtype, step):
    """A step in which numbers are rounded to a type."""

    def enter(q, k, v):
        return tuple(x.to(dtype).to(x.dtype) for x in (q, k, v))

    def compare(q, k):
        return (q.to(dtype) @ k.mT.to(dtype)).to(q.dtype)

    def weigh(scores):
        return softmax(scores.to(dtype)).to(scores.dtype)

    def mix(weights, v):
        return (weights.to(dtype) @ v.to(dtype)).to(v.dtype)

    return {"enter": enter, "compare": compare, "weigh": weigh, "mix": mix}[
        step
    ]


def cut_off(*names):
    """Queries, keys or values through which no gradient flows back."""

    def enter(q, k, v):
        given = {"q": q, "k": k, "v": v}
        return tuple(
            x.detach() if name in names else x for name, x in given.items()
        )

    return enter


def along_axis_1(weights, allowed=None):
    """Weights, averaged along axis 1, whatever that is."""
    if weights.ndim < 3:
        return weights
    return weights.mean(1, keepdim=True).expand_as(weights)


SCALES = (
    scaled(weights.no_scale, lambda w: 1.0),
    scaled(weights.divided_by_d, lambda w: 1 / w.d),
    scaled(weights.multiplied_by_the_root, lambda w: math.sqrt(w.d)),
    scaled(weights.multiplied_by_the_root, lambda w: float(w.d)),
    scaled(weights.scaled_by_the_number_of_keys, lambda w: w.n_k**-0.5),
    scaled(weights.scaled_by_the_number_of_keys, lambda w: w.n_q**-0.5),
    scaled(functions.scaled_by_the_width_of_v, lambda w: w.d_v**-0.5),
    scaled(scaling.number_of_heads, lambda w: w.heads**-0.5),
    scaled(scaled_by_the_width_of_the_model, lambda w: w.d_model**-0.5),
    scaled(the_scale_is_applied_twice, lambda w: w.d**-1.5),
    scaled(minus_the_product, lambda w: -(w.d**-0.5)),
    scaled(weights.divided_by_d, lambda w: 1 / w.d_model),
    scaled(the_scale_is_applied_twice, lambda w: w.d**-0.25),
    Deviation(
        {"compare": cosine, "scale": lambda w: 1.0},
        weights.cosine_instead_of_product,
    ),
    Deviation({"compare": cosine}, weights.cosine_instead_of_product),
    Deviation(
        {"compare": lambda q, k: F.normalize(q, dim=-1) @ k.mT},
        weights.cosine_instead_of_product,
    ),
    Deviation(
        {"compare": lambda q, k: q @ F.normalize(k, dim=-1).mT},
        weights.cosine_instead_of_product,
    ),
)
ENTRANCES = (
    Deviation({"enter": lambda q, k, v: (q, q, v)}, queries_as_keys),
    Deviation({"enter": lambda q, k, v: (k, k, v)}, keys_as_queries),
    Deviation(
        {"enter": lambda q, k, v: (k, q, v)}, functions.weights_on_their_side
    ),
    Deviation({"enter": lambda q, k, v: (q, k, k)}, keys_are_the_values),
    Deviation(
        {"enter": lambda q, k, v: (q, v, k)}, functions.keys_and_values_swapped
    ),
    Deviation(
        {"enter": lambda q, k, v: (q, v, v)}, functions.keys_and_values_swapped
    ),
    Deviation({"enter": first_texts_keys}, keys_of_the_first_sequence),
    Deviation({"enter": first_texts_values}, values_of_the_first_sequence),
    Deviation({"enter": first_texts_both}, keys_of_the_first_sequence),
    Deviation({"enter": first_heads_keys}, one_head_for_all),
    Deviation({"enter": first_heads_both}, one_head_for_all),
    Deviation({"enter": other_heads}, heads_in_another_order),
    Deviation({"enter": other_heads_of_both}, heads_in_another_order),
    Deviation({"enter": other_heads_of_values}, heads_in_another_order),
)
SOFTMAXES = (
    *(
        Deviation({"weigh": along(axis, mended)}, name)
        for axis, name in (
            (-2, weights.softmax_over_queries),
            (1, weights.softmax_over_axis_1),
            (-3, softmax_over_heads),
            (0, softmax_over_the_batch),
        )
        for mended in (True, False)
    ),
    Deviation({"weigh": unchanged}, weights.no_softmax),
    Deviation({"weigh": over_the_table}, softmax_over_all_at_once),
    Deviation({"weigh": torch.sigmoid}, weights.sigmoid_instead_of_softmax),
    Deviation(
        {"weigh": lambda s: s.nan_to_num(neginf=0.0)}, weights.no_softmax
    ),
    Deviation({"weigh": overflowing}, weights.softmax_that_overflows),
    Deviation({"weigh": overflowing_or_empty}, weights.softmax_that_overflows),
    Deviation({"weigh": not_divided}, weights.not_normalised),
    Deviation({"weigh": undivided}, weights.not_normalised),
)
MIXES = (
    Deviation({"mix": lambda w, v: w.mT @ v}, functions.weights_on_their_side),
    Deviation({"after": of_all_heads}, weights_averaged),
    Deviation({"after": along_axis_1}, weights_averaged),
    Deviation({"mix": lambda w, v: w}, functions.weights_returned),
)
EXITS = (
    Deviation(
        {"leave": lambda out, w: out * w.d**-0.5}, weights.scale_after_softmax
    ),
    Deviation(
        {"leave": lambda out, w: out * w.d**-0.5, "scale": lambda w: 1.0},
        functions.the_output_is_scaled,
    ),
)
PRECISION = tuple(
    Deviation({step: rounded(dtype, step)}, name)
    for dtype, name in (
        (torch.float32, functions.computed_in_float32),
        (torch.float16, computed_in_half_precision),
        (torch.bfloat16, computed_in_half_precision),
    )
    for step in ("enter", "weigh", "compare", "mix")
)
DETACHED = (
    Deviation({"after": lambda w, allowed: w.detach()}, functions.detached),
    *(
        Deviation({"enter": cut_off(*names)}, functions.detached)
        for names in ("q", "k", "v", "qk", "kv", "qv")
    ),
)
ALL = (
    *SCALES,
    *ENTRANCES,
    *SOFTMAXES,
    *MIXES,
    *EXITS,
    *PRECISION,
    *DETACHED,
)
