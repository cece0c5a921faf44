"""`feed_forward(x, W_in, b_in, W_out, b_out)`: widen, bend, narrow."""

import torch
import torch.nn.functional as F

from selfattn.doctor.exercise import Exercise, mistake
from selfattn.doctor.probes import Inputs, Probe, in_other_order

SIZES = {"d": 5, "d_ff": 17}
EQUAL = {"d": 5, "d_ff": 5, "n": 5}

WEIGHTS = {"W_in": "d d_ff", "b_in": "d_ff", "W_out": "d_ff d", "b_out": "d"}
ROWS = {"x": "n d"} | WEIGHTS
BATCH = {"x": "batch n d"} | WEIGHTS


def zeros(inputs: Inputs) -> None:
    """A token of nothing but zeros."""
    inputs["x"] *= 0


@mistake
def no_activation(x, W_in, b_in, W_out, b_out):
    """Twice the input, twice the output: your network is a single matrix.

    Cause: Nothing bends between the two maps, so they merge into one.
    Cure: Put (…).clamp(min=0), which is ReLU, between them.
    """
    return (x @ W_in + b_in) @ W_out + b_out


@mistake
def activation_at_the_end(x, W_in, b_in, W_out, b_out):
    """Your output is never negative, and bends in the wrong place.

    Cause: ReLU comes after both maps instead of between them.
    Cure: Move it before W_out.
    """
    return ((x @ W_in + b_in) @ W_out + b_out).clamp(min=0)


@mistake
def activation_twice(x, W_in, b_in, W_out, b_out):
    """Your output is never negative, so the residual path can only grow.

    Cause: ReLU comes after the second map as well.
    Cure: Only between the two.
    """
    return ((x @ W_in + b_in).clamp(min=0) @ W_out + b_out).clamp(min=0)


@mistake
def activation_on_the_input(x, W_in, b_in, W_out, b_out):
    """Negative features of the input go unheard.

    Cause: ReLU is applied to x, not to what the first map makes of it.
    Cure: (x @ W_in + b_in).clamp(min=0).
    """
    return (x.clamp(min=0) @ W_in + b_in) @ W_out + b_out


@mistake
def bias_after_the_activation(x, W_in, b_in, W_out, b_out):
    """What lies between may be negative.

    Cause: b_in is added after ReLU.
    Cure: Add it before: it decides where each feature begins to bend.
    """
    return ((x @ W_in).clamp(min=0) + b_in) @ W_out + b_out


@mistake
def no_inner_bias(x, W_in, b_in, W_out, b_out):
    """All features bend at zero.

    Cause: b_in is not added.
    Cure: x @ W_in + b_in, before ReLU.
    """
    return (x @ W_in).clamp(min=0) @ W_out + b_out


@mistake
def no_outer_bias(x, W_in, b_in, W_out, b_out):
    """A constant is missing from every token.

    Cause: b_out is not added.
    Cure: Add it last.
    """
    return (x @ W_in + b_in).clamp(min=0) @ W_out


@mistake
def gelu(x, W_in, b_in, W_out, b_out):
    """Your numbers are near, but smooth where they should bend.

    Cause: This is GELU. A good choice, but not the one asked for.
    Cure: max(0, ·) is (…).clamp(min=0).
    """
    return F.gelu(x @ W_in + b_in) @ W_out + b_out


@mistake
def absolute_value(x, W_in, b_in, W_out, b_out):
    """What should be cut off is turned over.

    Cause: abs instead of max(0, ·).
    Cure: (…).clamp(min=0).
    """
    return (x @ W_in + b_in).abs() @ W_out + b_out


@mistake
def residual_added(x, W_in, b_in, W_out, b_out):
    """Your output is too large by exactly x.

    Cause: The residual path is in it already; whoever calls it adds x again.
    Cure: Return what the network makes, without x.
    """
    return x + (x @ W_in + b_in).clamp(min=0) @ W_out + b_out


@mistake
def weights_transposed(x, W_in, b_in, W_out, b_out):
    """It fails, unless d_ff is d, and then the numbers are wrong.

    Cause: The matrices are read as PyTorch's Linear stores them, (out, in).
    Cure: Here they are (in, out): x @ W_in.
    """
    return (x @ W_in.mT + b_in).clamp(min=0) @ W_out.mT + b_out


@mistake
def averaged_over_tokens(x, W_in, b_in, W_out, b_out):
    """Every token gets the same.

    Cause: The tokens were averaged between the maps. The feed-forward
        network mixes no tokens; that is attention's work.
    Cure: Leave the axis of the tokens alone.
    """
    inner = (x @ W_in + b_in).clamp(min=0)
    if x.ndim > 1:
        inner = inner.mean(-2, keepdim=True).expand_as(inner)
    return inner @ W_out + b_out


FEED_FORWARD = Exercise(
    "layers/feed_forward",
    asks="max(0, x W_in + b_in) W_out + b_out, for each token",
    solution=lambda x, W_in, b_in, W_out, b_out: (
        (x @ W_in + b_in).clamp(min=0) @ W_out + b_out
    ),
    probes=(
        Probe("it is the formula", ROWS, SIZES, gradient=True),
        Probe("x multiplies from the left, when all is square", ROWS, EQUAL),
        Probe("a batch goes through", BATCH, SIZES),
        Probe(
            "one token without a sequence will do", ROWS | {"x": "d"}, SIZES
        ),
        Probe("float64 stays float64", ROWS, SIZES, dtype=torch.float64),
        Probe(
            "a zero token still meets the biases", ROWS, SIZES, change=zeros
        ),
        Probe(
            "the order in memory does not matter",
            BATCH,
            SIZES,
            change=in_other_order,
        ),
    ),
    mistakes=(
        no_activation,
        activation_at_the_end,
        activation_twice,
        activation_on_the_input,
        bias_after_the_activation,
        no_inner_bias,
        no_outer_bias,
        gelu,
        absolute_value,
        residual_added,
        weights_transposed,
        averaged_over_tokens,
    ),
)
