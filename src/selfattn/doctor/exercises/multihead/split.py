"""`split_heads(x, n_heads)`: features cut into heads."""

from collections.abc import Callable

import torch

from selfattn.doctor.exercise import Exercise, mistake
from selfattn.doctor.probes import Inputs, Probe, Sizes, in_other_order
from selfattn.multihead import split_heads


def three_heads(sizes: Sizes) -> int:
    """Three heads, or one where three do not divide the features."""
    return 3 if sizes["d_model"] % 3 == 0 else 1


def five_heads(sizes: Sizes) -> int:
    """Five heads, or one where five do not divide the features."""
    return 5 if sizes["d_model"] % 5 == 0 else 1


def one_head(sizes: Sizes) -> int:
    """One head."""
    return 1


def one_feature_a_head(sizes: Sizes) -> int:
    """As many heads as features."""
    return sizes["d_model"]


def shared_memory(inputs: Inputs) -> None:
    """Every second feature of a tensor twice as wide."""
    inputs["x"] = inputs["x"].repeat_interleave(2, dim=-1)[..., ::2]


Sources = dict[str, str | Callable[[Sizes], object]]
ONE: Sources = {"x": "n d_model", "n_heads": three_heads}
BATCH: Sources = {**ONE, "x": "batch n d_model"}
MORE: Sources = {**ONE, "x": "batch heads n d_model"}
SIZES = {"n": 7, "d_model": 15, "batch": 2, "heads": 11}


@mistake
def cut_without_transpose(x, n_heads):
    """The shape is right, but a head's rows are pieces of other tokens.

    Cause: x is reshaped to (…, n_heads, n, d_head) at once. That cuts the
        numbers in the order in which they lie in memory: the first head gets
        the first tokens with all their features.
    Cure: Cut the features first, unflatten(-1, (n_heads, -1)), then exchange
        tokens and heads: transpose(-3, -2).
    """
    *front, n, d_model = x.shape
    return x.reshape(*front, n_heads, n, d_model // n_heads)


@mistake
def every_nth_feature(x, n_heads):
    """The shape is right, but a head's features are not neighbours.

    Cause: The features are cut as (d_head, n_heads), so head i gets every
        n_heads-th feature.
    Cure: The head's number comes first: unflatten(-1, (n_heads, -1)).
    """
    return x.unflatten(-1, (-1, n_heads)).movedim(-1, -3)


@mistake
def heads_behind_tokens(x, n_heads):
    """Your axes are (…, n, n_heads, d_head).

    Cause: The features are cut, but tokens and heads are not exchanged, so
        that heads would be compared with heads.
    Cure: transpose(-3, -2) at the end.
    """
    return x.unflatten(-1, (n_heads, -1))


@mistake
def features_before_tokens(x, n_heads):
    """Your axes are (…, n_heads, d_head, n).

    Cause: The tokens are moved to the last place.
    Cure: Exchange just the tokens and the heads: transpose(-3, -2).
    """
    return x.unflatten(-1, (n_heads, -1)).movedim(-3, -1)


@mistake
def heads_in_front_of_everything(x, n_heads):
    """Your heads come before the batch.

    Cause: The axis of heads is moved to the first place.
    Cure: It belongs just before the tokens: transpose(-3, -2).
    """
    return x.unflatten(-1, (n_heads, -1)).movedim(-2, 0)


@mistake
def heads_folded_into_the_batch(x, n_heads):
    """Batch and heads are one axis.

    Cause: They are flattened together. It works, but nobody can tell them
        apart afterwards.
    Cure: Leave them as two axes.
    """
    heads = split_heads(x, n_heads)
    return heads.reshape(-1, *heads.shape[-2:])


@mistake
def all_features_for_each_head(x, n_heads):
    """Each of your heads has all features.

    Cause: x is repeated, not cut.
    Cure: A head is d_model / n_heads wide: unflatten(-1, (n_heads, -1)).
    """
    return torch.stack([x] * n_heads, dim=-3)


@mistake
def heads_from_last_to_first(x, n_heads):
    """Your heads stand in the opposite order.

    Cause: They are flipped, or cut from the end.
    Cure: Head 0 has the first d_head features.
    """
    return split_heads(x, n_heads).flip(-3)


@mistake
def axes_counted_from_the_front(x, n_heads):
    """It is right for one batch axis, and wrong for none or two.

    Cause: Axes 1 and 2 are exchanged, wherever the tokens are.
    Cure: Count from the end: transpose(-3, -2).
    """
    return x.unflatten(-1, (n_heads, -1)).transpose(1, 2)


@mistake
def just_one_batch_axis(x, n_heads):
    """It fails unless there is exactly one axis before the tokens.

    Cause: The shape is unpacked into three numbers.
    Cure: unflatten(-1, (n_heads, -1)) needs no other axis than the last.
    """
    batch, n, d_model = x.shape
    shape = batch, n, n_heads, d_model // n_heads
    return x.reshape(shape).transpose(1, 2)


@mistake
def view_of_what_has_gaps(x, n_heads):
    """It fails when x does not lie in memory in one piece.

    Cause: view only renames the axes of memory as it is; after a transpose
        or a slice that may be impossible.
    Cure: unflatten or reshape, which copy when they must.
    """
    flat = x.view(-1)
    return split_heads(flat.view(x.shape), n_heads)


@mistake
def detached(x, n_heads):
    """The output is right, but nothing could be learned through it.

    Cause: It is cut off from x, by .detach(), .data, numpy or
        torch.no_grad(), so no gradient flows back.
    Cure: Stay with differentiable operations on tensors.
    """
    return split_heads(x, n_heads).detach()


SPLIT = Exercise(
    "multihead/split",
    asks="(…, n, d_model) to (…, n_heads, n, d_head)",
    solution=split_heads,
    probes=(
        Probe("head i has the i-th block of features", ONE, SIZES),
        Probe(
            "each sequence of a batch is for itself",
            BATCH,
            SIZES,
            gradient=True,
        ),
        Probe("any axes may stand in front", MORE, SIZES),
        Probe(
            "heads are heads, when all axes are equally long",
            {**BATCH, "n_heads": five_heads},
            {"batch": 5, "n": 5, "d_model": 25},
        ),
        Probe("one head is everything", {**BATCH, "n_heads": one_head}, SIZES),
        Probe(
            "a head may have a single feature",
            {**BATCH, "n_heads": one_feature_a_head},
            SIZES,
        ),
        Probe("a single token will do", BATCH, {**SIZES, "n": 1}),
        Probe("float64 stays float64", BATCH, SIZES, dtype=torch.float64),
        Probe(
            "the order in memory does not matter",
            BATCH,
            SIZES,
            change=in_other_order,
        ),
        Probe("nor do gaps in memory", BATCH, SIZES, change=shared_memory),
    ),
    mistakes=(
        cut_without_transpose,
        every_nth_feature,
        heads_behind_tokens,
        features_before_tokens,
        heads_in_front_of_everything,
        heads_folded_into_the_batch,
        all_features_for_each_head,
        heads_from_last_to_first,
        axes_counted_from_the_front,
        just_one_batch_axis,
        view_of_what_has_gaps,
        detached,
    ),
)
