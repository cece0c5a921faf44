"""`sinks_mask(n, window, sinks)`: a causal window, and the first tokens."""

import torch

from selfattn.doctor.exercise import Exercise, mistake, mistake_as
from selfattn.doctor.exercises.sparse import summaries
from selfattn.doctor.probes import Probe


def text(n, window, sinks):
    """Three numbers as the inputs of a probe."""
    return {
        "n": lambda _: n,
        "window": lambda _: window,
        "sinks": lambda _: sinks,
    }


def places(n):
    """Queries down, keys across."""
    return torch.arange(n)[:, None], torch.arange(n)[None, :]


def solution(n, window, sinks):
    """Near or first, and not later."""
    i, j = places(n)
    return (j <= i) & ((i - j < window) | (j < sinks))


@mistake
def one_key_more(n, window, sinks):
    """Your window has a key more.

    Cause: The distance is compared with <=.
    Cure: A window of w counts itself: i - j < w.
    """
    i, j = places(n)
    return (j <= i) & ((i - j <= window) | (j < sinks))


@mistake
def one_key_less(n, window, sinks):
    """Your window has a key less.

    Cause: The distance is compared with w - 1, and with <.
    Cure: A window of w counts itself: i - j < w.
    """
    i, j = places(n)
    return (j <= i) & ((i - j < window - 1) | (j < sinks) | (i == j))


@mistake
def sinks_see_the_future(n, window, sinks):
    """The first tokens hear the future of each other.

    Cause: The first columns were opened to all, and the causal order put on
        the window alone.
    Cure: j <= i holds for both.
    """
    i, j = places(n)
    return ((j <= i) & (i - j < window)) | (j < sinks)


@mistake
def both_sides(n, window, sinks):
    """Your queries see what comes later.

    Cause: |i - j| < w is a window to both sides.
    Cure: Add j <= i.
    """
    i, j = places(n)
    return ((i - j).abs() < window) | ((j < sinks) & (j <= i))


@mistake
def global_tokens(n, window, sinks):
    """The first tokens see everything.

    Cause: They were made global, as in Longformer: they see all and are
        seen by all.
    Cure: A sink is seen. What it sees itself stays causal.
    """
    i, j = places(n)
    return ((j <= i) & ((i - j < window) | (j < sinks))) | (i < sinks)


@mistake
def sinks_in_the_window(n, window, sinks):
    """The window is smaller than it was asked to be.

    Cause: The sinks were taken out of the window's places, as a cache of
        fixed size would.
    Cure: Here w nearest keys, and the sinks besides.
    """
    i, j = places(n)
    near = (i - j < max(1, window - sinks)) | (j < sinks)
    return (j <= i) & near


@mistake_as(summaries.blocked)
def blocked(n, window, sinks):
    return ~solution(n, window, sinks)


@mistake
def window_alone(n, window, sinks):
    """The first tokens are forgotten.

    Cause: There are no sinks in it.
    Cure: Or j < sinks.
    """
    i, j = places(n)
    return (j <= i) & (i - j < window)


@mistake_as(summaries.on_its_side)
def on_its_side(n, window, sinks):
    return solution(n, window, sinks).mT


SINKS = Exercise(
    "window/sinks",
    asks="True where a query may look: its w nearest, and the first tokens",
    solution=solution,
    probes=(
        Probe("near keys and first ones are seen", text(11, 3, 2)),
        Probe("without sinks it is a causal window", text(7, 3, 0)),
        Probe("more sinks than a window has keys", text(11, 2, 5)),
        Probe("a window longer than the text is causal", text(5, 7, 1)),
        Probe("a window of 1 sees itself and the sinks", text(7, 1, 2)),
    ),
    mistakes=(
        one_key_more,
        one_key_less,
        sinks_see_the_future,
        both_sides,
        global_tokens,
        sinks_in_the_window,
        blocked,
        window_alone,
        on_its_side,
    ),
)
