"""`pre_norm(x, sublayer, norm)`: a path that nothing stands on."""

import torch
import torch.nn.functional as F

from selfattn.doctor.exercise import Exercise, mistake
from selfattn.doctor.probes import Inputs, Probe


def normalise(sizes):
    """Layer normalisation without gain and shift."""
    return lambda x: F.layer_norm(x, x.shape[-1:])


def turn(sizes):
    """A sublayer: the features in reverse order, bent."""
    return lambda x: 2 * torch.tanh(x.flip(-1)) + 0.5


def silence(sizes):
    """A sublayer that adds nothing."""
    return torch.zeros_like


def mix(sizes):
    """A sublayer that mixes tokens: each gets a share of their sum."""
    return lambda x: x + 0.25 * x.sum(-2, keepdim=True)


PARTS = {"sublayer": turn, "norm": normalise}
ROWS = {"x": "n d"} | PARTS


def far_away(inputs: Inputs) -> None:
    """Large features: a norm shows."""
    inputs["x"] *= 8


@mistake
def post_norm(x, sublayer, norm):
    """Every token comes out with mean 0 and variance 1: this is post-norm.

    Cause: The norm stands on the path, after the sum.
    Cure: Norm what the sublayer is given, and nothing else:
        x + sublayer(norm(x)).
    """
    return norm(x + sublayer(x))


@mistake
def norm_on_both_branches(x, sublayer, norm):
    """A silent sublayer still changes x.

    Cause: The path carries norm(x) instead of x; often by x = norm(x) in a
        line of its own.
    Cure: Keep the normed x apart: x + sublayer(norm(x)).
    """
    x = norm(x)
    return x + sublayer(x)


@mistake
def norm_behind_the_sublayer(x, sublayer, norm):
    """The sublayer sees x at its full size.

    Cause: What it makes is normed, not what it is given.
    Cure: x + sublayer(norm(x)).
    """
    return x + norm(sublayer(x))


@mistake
def norm_before_and_after(x, sublayer, norm):
    """Every token comes out with mean 0 and variance 1.

    Cause: There is a norm before the sublayer, and another on the path.
    Cure: Leave the second out; a stack gets one norm at its very end.
    """
    return norm(x + sublayer(norm(x)))


@mistake
def no_residual(x, sublayer, norm):
    """Behind a silent sublayer nothing is left.

    Cause: x is not added.
    Cure: x + sublayer(norm(x)).
    """
    return sublayer(norm(x))


@mistake
def no_norm(x, sublayer, norm):
    """The larger x is, the larger is what the sublayer sees.

    Cause: There is no norm.
    Cure: Give the sublayer norm(x).
    """
    return x + sublayer(x)


@mistake
def norm_of_the_path_alone(x, sublayer, norm):
    """It is the wrong branch that is normed.

    Cause: The path carries norm(x), and the sublayer is given x.
    Cure: The other way round: x + sublayer(norm(x)).
    """
    return norm(x) + sublayer(x)


@mistake
def sublayer_subtracted(x, sublayer, norm):
    """What the sublayer makes has the wrong sign.

    Cause: It is subtracted.
    Cure: Add it.
    """
    return x - sublayer(norm(x))


@mistake
def averaged_with_the_path(x, sublayer, norm):
    """The path carries half of x, and after ten blocks a thousandth.

    Cause: The sum is divided by two.
    Cure: Add, and do not average.
    """
    return (x + sublayer(norm(x))) / 2


@mistake
def added_in_place(x, sublayer, norm):
    """The caller's x is changed.

    Cause: += writes into the tensor that was handed in.
    Cure: x + … makes a new one.
    """
    x += sublayer(norm(x))
    return x


PRE_NORM = Exercise(
    "layers/pre_norm",
    asks="x + sublayer(norm(x))",
    solution=lambda x, sublayer, norm: x + sublayer(norm(x)),
    probes=(
        Probe("it is x + sublayer(norm(x))", ROWS, gradient=True),
        Probe("a batch goes through", ROWS | {"x": "batch n d"}),
        Probe("tokens may be mixed by the sublayer", ROWS | {"sublayer": mix}),
        Probe(
            "past a sublayer that adds nothing, x arrives as it was",
            ROWS | {"sublayer": silence},
            gradient=True,
        ),
        Probe("x may be large", ROWS, change=far_away, tolerance=1e-4),
        Probe("float64 stays float64", ROWS, dtype=torch.float64),
    ),
    mistakes=(
        post_norm,
        norm_on_both_branches,
        norm_behind_the_sublayer,
        norm_before_and_after,
        no_residual,
        no_norm,
        norm_of_the_path_alone,
        sublayer_subtracted,
        averaged_with_the_path,
        added_in_place,
    ),
)
