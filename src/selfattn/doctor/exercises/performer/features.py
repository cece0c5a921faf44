"""`features(x, omega)`: positive random features of softmax."""

import torch

from selfattn.doctor.exercise import Exercise, mistake
from selfattn.doctor.probes import Inputs, Probe

TEXT = {"x": "n d", "omega": "m d"}
SIZES = {"n": 5, "d": 3, "m": 7}


def short(inputs: Inputs) -> None:
    """All vectors are nearly nothing."""
    inputs["x"] = inputs["x"] / 100


def still(inputs: Inputs) -> None:
    """The directions are nothing: only the length counts."""
    inputs["omega"] = torch.zeros_like(inputs["omega"])


def solution(x, omega):
    """exp(ω·x / d^¼ - |x|² / (2√d)), over the root of their number."""
    x = x / x.shape[-1] ** 0.25
    logs = x @ omega.mT - x.square().sum(dim=-1, keepdim=True) / 2
    return logs.exp() / len(omega) ** 0.5


@mistake
def not_scaled(x, omega):
    """The products estimate exp(q·k), without the root of d.

    Cause: The vectors come in as they are.
    Cure: Divide each by d^¼: together that is √d.
    """
    logs = x @ omega.mT - x.square().sum(dim=-1, keepdim=True) / 2
    return logs.exp() / len(omega) ** 0.5


@mistake
def scaled_by_the_root(x, omega):
    """The scores are divided by d.

    Cause: Queries and keys were divided by √d each.
    Cure: By d^¼ each: their product is then divided by √d.
    """
    x = x / x.shape[-1] ** 0.5
    logs = x @ omega.mT - x.square().sum(dim=-1, keepdim=True) / 2
    return logs.exp() / len(omega) ** 0.5


@mistake
def no_length(x, omega):
    """Products are too large on average, those of long vectors most.

    Cause: What the exponential of ω·x has too much on average, |x|²/2, was
        not taken off.
    Cure: exp(ω·x - |x|²/2).
    """
    x = x / x.shape[-1] ** 0.25
    return (x @ omega.mT).exp() / len(omega) ** 0.5


@mistake
def whole_length(x, omega):
    """Products are too small, those of long vectors most.

    Cause: |x|² was taken off, not its half.
    Cure: exp(ω·x - |x|²/2).
    """
    x = x / x.shape[-1] ** 0.25
    logs = x @ omega.mT - x.square().sum(dim=-1, keepdim=True)
    return logs.exp() / len(omega) ** 0.5


@mistake
def length_added(x, omega):
    """Long vectors get weights that are far too large.

    Cause: The half of the squared length was added.
    Cure: It is taken off; added, it belongs to sines and cosines.
    """
    x = x / x.shape[-1] ** 0.25
    logs = x @ omega.mT + x.square().sum(dim=-1, keepdim=True) / 2
    return logs.exp() / len(omega) ** 0.5


@mistake
def length_not_scaled(x, omega):
    """It is right for short vectors only.

    Cause: ω·x is scaled, the squared length is not.
    Cure: Scale x first, then take both of it.
    """
    logs = x @ omega.mT / x.shape[-1] ** 0.25
    logs = logs - x.square().sum(dim=-1, keepdim=True) / 2
    return logs.exp() / len(omega) ** 0.5


@mistake
def length_not_squared(x, omega):
    """The length is taken off where its square belongs.

    Cause: `norm`, without a square.
    Cure: x.square().sum(dim=-1).
    """
    x = x / x.shape[-1] ** 0.25
    logs = x @ omega.mT - x.norm(dim=-1, keepdim=True) / 2
    return logs.exp() / len(omega) ** 0.5


@mistake
def a_sum_and_not_a_mean(x, omega):
    """Products are as many times too large as there are directions.

    Cause: Nothing was divided by the number of directions.
    Cure: Divide features by its root: a product is then divided by it.
    """
    x = x / x.shape[-1] ** 0.25
    logs = x @ omega.mT - x.square().sum(dim=-1, keepdim=True) / 2
    return logs.exp()


@mistake
def divided_by_their_number(x, omega):
    """Products are too small by the number of directions.

    Cause: Each feature was divided by it, so the product twice.
    Cure: Divide features by its root.
    """
    x = x / x.shape[-1] ** 0.25
    logs = x @ omega.mT - x.square().sum(dim=-1, keepdim=True) / 2
    return logs.exp() / len(omega)


@mistake
def cosines(x, omega):
    """Some features are negative.

    Cause: Cosines were taken: a half of trigonometric features.
    Cure: Exponentials, which are positive.
    """
    x = x / x.shape[-1] ** 0.25
    lengths = x.square().sum(dim=-1, keepdim=True) / 2
    return (x @ omega.mT).cos() * lengths.exp() / len(omega) ** 0.5


FEATURES = Exercise(
    "performer/features",
    asks="exp(ω·x / d^¼ - |x|² / (2√d)) / √m",
    solution=solution,
    probes=(
        Probe("features are those of lemma 1", TEXT, SIZES, gradient=True),
        Probe("all is scaled alike", TEXT, {**SIZES, "d": 11}),
        Probe(
            "without directions the length is left", TEXT, SIZES, change=still
        ),
        Probe("short vectors have even features", TEXT, SIZES, change=short),
        Probe("float64 stays float64", TEXT, SIZES, dtype=torch.float64),
    ),
    mistakes=(
        not_scaled,
        scaled_by_the_root,
        no_length,
        whole_length,
        length_added,
        length_not_scaled,
        length_not_squared,
        a_sum_and_not_a_mean,
        divided_by_their_number,
        cosines,
    ),
)
