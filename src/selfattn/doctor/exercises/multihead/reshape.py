"""`merge_heads(x)`: the heads side by side again, each token in its row."""

import torch

from selfattn.doctor.exercise import Exercise, mistake, mistake_as
from selfattn.doctor.exercises.multihead import split
from selfattn.doctor.probes import Probe, in_other_order
from selfattn.multihead import merge_heads

ONE = {"x": "heads n d"}
BATCH = {"x": "batch heads n d"}
MORE = {"x": "batch groups heads n d"}
SIZES = {"groups": 2, "heads": 3, "n": 7, "d": 5, "batch": 11}


@mistake
def reshaped_without_transpose(x):
    """The shape is right, but a token's row holds pieces of other tokens.

    Cause: The heads are still before the tokens when the numbers are taken
        in the order of memory: row 0 gets head 0 of the first tokens.
    Cure: First bring each token's heads together: transpose(-3, -2).
    """
    *front, n_heads, n, d = x.shape
    return x.reshape(*front, n, n_heads * d)


@mistake
def view_after_transpose(x):
    """It fails: “view size is not compatible”.

    Cause: transpose does not move a number in memory, so there is no row to
        view.
    Cure: flatten(-2) or reshape after the transpose; they copy when they
        must.
    """
    *front, n_heads, n, d = x.shape
    return x.transpose(-3, -2).view(*front, n, n_heads * d)


@mistake
def features_first_then_heads(x):
    """The heads' features are shuffled together, not side by side.

    Cause: The heads are moved behind the features before flattening.
    Cure: Heads before features: transpose(-3, -2), then flatten(-2).
    """
    return x.movedim(-3, -1).flatten(-2)


@mistake
def not_flattened(x):
    """Your axes are (…, n, n_heads, d_head).

    Cause: The last step is missing.
    Cure: flatten(-2) makes one axis of the last two.
    """
    return x.transpose(-3, -2)


@mistake
def features_and_tokens_exchanged(x):
    """Your rows are features instead of tokens, unless both are as many.

    Cause: The last two axes are exchanged, not heads and tokens.
    Cure: transpose(-3, -2).
    """
    *front, n_heads, n, d = x.shape
    return x.transpose(-2, -1).reshape(*front, n, n_heads * d)


@mistake
def heads_averaged(x):
    """Your output is as wide as one head.

    Cause: The heads are averaged. What made them different is gone.
    Cure: Put them side by side.
    """
    return x.mean(dim=-3)


@mistake
def heads_added(x):
    """Your output is as wide as one head, and its numbers are large.

    Cause: The heads are added up.
    Cure: Put them side by side.
    """
    return x.sum(dim=-3)


@mistake
def heads_from_last_to_first(x):
    """Your heads stand in the opposite order.

    Cause: They are flipped.
    Cure: Head 0 comes first.
    """
    return merge_heads(x.flip(-3))


@mistake
def tokens_end_to_end(x):
    """One row holds all tokens of a head.

    Cause: Tokens and features are flattened together.
    Cure: Heads and features are: transpose(-3, -2), then flatten(-2).
    """
    return x.flatten(-2)


@mistake_as(split.axes_counted_from_the_front)
def axes_counted_from_the_front(x):
    return x.transpose(1, 2).flatten(-2)


@mistake
def every_axis_counted_from_the_front(x):
    """It is right for one batch axis, and wrong for none or two.

    Cause: Axes 1 and 2 are exchanged, and all from axis 2 on flattened,
        wherever the tokens are.
    Cure: Count from the end: transpose(-3, -2), then flatten(-2).
    """
    return x.transpose(1, 2).flatten(2)


@mistake_as(split.detached)
def detached(x):
    return merge_heads(x).detach()


RESHAPE = Exercise(
    "multihead/reshape",
    asks="(…, n_heads, n, d_head) to (…, n, n_heads · d_head)",
    solution=merge_heads,
    probes=(
        Probe("a token keeps its features, head by head", ONE, SIZES),
        Probe(
            "each sequence of a batch is for itself",
            BATCH,
            SIZES,
            gradient=True,
        ),
        Probe("any axes may stand in front", MORE, SIZES),
        Probe(
            "tokens are tokens, when all axes are equally long",
            BATCH,
            dict.fromkeys(SIZES, 5),
        ),
        Probe("a single head is handed on", BATCH, {**SIZES, "heads": 1}),
        Probe("a single token will do", BATCH, {**SIZES, "n": 1}),
        Probe("a single feature will do", BATCH, {**SIZES, "d": 1}),
        Probe("float64 stays float64", BATCH, SIZES, dtype=torch.float64),
        Probe(
            "the order in memory does not matter",
            BATCH,
            SIZES,
            change=in_other_order,
        ),
    ),
    mistakes=(
        reshaped_without_transpose,
        view_after_transpose,
        features_first_then_heads,
        not_flattened,
        features_and_tokens_exchanged,
        heads_averaged,
        heads_added,
        heads_from_last_to_first,
        tokens_end_to_end,
        axes_counted_from_the_front,
        every_axis_counted_from_the_front,
        detached,
    ),
)
