"""`encoder_block(x, attend, work, norm_1, norm_2)`: the parts, joined."""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from selfattn.doctor.exercise import Exercise, mistake
from selfattn.doctor.probes import Inputs, Probe

Layer = Callable[[Tensor], Tensor]


def first_norm(sizes: dict[str, int]) -> Layer:
    """Layer normalisation with a gain."""
    return lambda x: 2 * F.layer_norm(x, x.shape[-1:])


def second_norm(sizes: dict[str, int]) -> Layer:
    """Layer normalisation with another gain, and a shift."""
    return lambda x: 0.5 * F.layer_norm(x, x.shape[-1:]) + 0.25


def mix(sizes: dict[str, int]) -> Layer:
    """What stands for attention: each token gets a share of the sum."""
    return lambda x: 0.5 * x.flip(-1) + 0.125 * x.sum(-2, keepdim=True)


def turn(sizes: dict[str, int]) -> Layer:
    """What stands for the network: each token on its own, not linear."""
    return lambda x: torch.tanh(x.roll(1, -1)) - 0.25


def silence(sizes: dict[str, int]) -> Layer:
    """A sublayer that adds nothing."""
    return torch.zeros_like


PARTS = {
    "attend": mix,
    "work": turn,
    "norm_1": first_norm,
    "norm_2": second_norm,
}
ROWS = {"x": "n d"} | PARTS


def far_away(inputs: Inputs) -> None:
    """Large features: a norm shows."""
    inputs["x"] *= 8


def joined(x, attend, work, norm_1, norm_2):
    """The solution."""
    h = x + attend(norm_1(x))
    return h + work(norm_2(h))


@mistake
def norm_on_the_path(x, attend, work, norm_1, norm_2):
    """A block with silent sublayers still changes x.

    Cause: x = norm_1(x) in a line of its own: from there on the path carries
        the normed x.
    Cure: Leave x alone: x + attend(norm_1(x)).
    """
    x = norm_1(x)
    x = x + attend(x)
    x = norm_2(x)
    return x + work(x)


@mistake
def second_norm_on_the_path(x, attend, work, norm_1, norm_2):
    """The path is clear past attention, and normed past the network.

    Cause: h = norm_2(h) before the network, which is then added to that h.
    Cure: h + work(norm_2(h)).
    """
    h = norm_2(x + attend(norm_1(x)))
    return h + work(h)


@mistake
def post_norm(x, attend, work, norm_1, norm_2):
    """A norm comes last, so this is post-norm.

    Cause: norm(x + sublayer(x)), the order of 2017.
    Cure: Norm what the sublayer is given: x + attend(norm_1(x)).
    """
    h = norm_1(x + attend(x))
    return norm_2(h + work(h))


@mistake
def one_norm_for_both(x, attend, work, norm_1, norm_2):
    """The second norm is never used, so nobody trains it.

    Cause: norm_1 stands before both sublayers.
    Cure: The network gets norm_2(h).
    """
    h = x + attend(norm_1(x))
    return h + work(norm_1(h))


@mistake
def norms_exchanged(x, attend, work, norm_1, norm_2):
    """Right as long as both norms are new, wrong with trained weights.

    Cause: norm_2 stands before attention and norm_1 before the network.
    Cure: In order: norm_1 first.
    """
    h = x + attend(norm_2(x))
    return h + work(norm_1(h))


@mistake
def network_first(x, attend, work, norm_1, norm_2):
    """The two sublayers come in the wrong order.

    Cause: The network works before attention has mixed.
    Cure: Attention first, then the network.
    """
    h = x + work(norm_1(x))
    return h + attend(norm_2(h))


@mistake
def residual_from_the_start(x, attend, work, norm_1, norm_2):
    """What attention found never leaves the block by the path.

    Cause: The network's output is added to x instead of to h.
    Cure: h + work(norm_2(h)).
    """
    h = x + attend(norm_1(x))
    return x + work(norm_2(h))


@mistake
def both_from_x(x, attend, work, norm_1, norm_2):
    """The network does not know what attention found.

    Cause: Both sublayers are given x, side by side. Some large models do
        that on purpose; it is another block.
    Cure: The network gets norm_2(h), with h = x + attend(norm_1(x)).
    """
    return x + attend(norm_1(x)) + work(norm_2(x))


@mistake
def no_path_past_attention(x, attend, work, norm_1, norm_2):
    """A silent attention deletes the sentence.

    Cause: h = attend(norm_1(x)) without x.
    Cure: Add x.
    """
    h = attend(norm_1(x))
    return h + work(norm_2(h))


@mistake
def no_path_past_the_network(x, attend, work, norm_1, norm_2):
    """A silent network deletes the sentence.

    Cause: h is not added to what the network makes.
    Cure: h + work(norm_2(h)).
    """
    return work(norm_2(x + attend(norm_1(x))))


@mistake
def no_second_norm(x, attend, work, norm_1, norm_2):
    """The larger h is, the larger is what the network sees.

    Cause: The network is given h itself.
    Cure: Give it norm_2(h).
    """
    h = x + attend(norm_1(x))
    return h + work(h)


@mistake
def no_first_norm(x, attend, work, norm_1, norm_2):
    """The larger x is, the larger is what attention sees.

    Cause: Attention is given x itself.
    Cure: Give it norm_1(x).
    """
    h = x + attend(x)
    return h + work(norm_2(h))


@mistake
def norm_last(x, attend, work, norm_1, norm_2):
    """Right up to a norm too many at the end.

    Cause: The last norm of the stack stands in every block.
    Cure: One last norm for the whole stack, after its last block.
    """
    h = x + attend(norm_1(x))
    return norm_2(h + work(norm_2(h)))


@mistake
def added_in_place(x, attend, work, norm_1, norm_2):
    """The caller's x is changed.

    Cause: += writes into the tensor that was handed in.
    Cure: h = x + … makes a new one.
    """
    x += attend(norm_1(x))
    return x + work(norm_2(x))


ENCODER_BLOCK = Exercise(
    "blocks/encoder_block",
    asks="h = x + attend(norm_1(x)), then h + work(norm_2(h))",
    solution=joined,
    probes=(
        Probe("both sublayers are added and normed", ROWS, gradient=True),
        Probe("a batch goes through", ROWS | {"x": "batch n d"}),
        Probe(
            "past sublayers that add nothing, x arrives as it was",
            ROWS | {"attend": silence, "work": silence},
            gradient=True,
        ),
        Probe("attention alone", ROWS | {"work": silence}),
        Probe("the network alone", ROWS | {"attend": silence}),
        Probe("x may be large", ROWS, change=far_away, tolerance=1e-4),
        Probe("float64 stays float64", ROWS, dtype=torch.float64),
    ),
    mistakes=(
        norm_on_the_path,
        second_norm_on_the_path,
        post_norm,
        one_norm_for_both,
        norms_exchanged,
        network_first,
        residual_from_the_start,
        both_from_x,
        no_path_past_attention,
        no_path_past_the_network,
        no_second_norm,
        no_first_norm,
        norm_last,
        added_in_place,
    ),
)
