"""`rolling(q, k, v, window)`: one token after another, from a ring."""

from typing import Any

import torch

from selfattn.doctor.exercise import Exercise, mistake
from selfattn.doctor.probes import Probe


def tokens(n: int, window: int) -> tuple[dict[str, Any], dict[str, int]]:
    """A text of n tokens, and a window."""
    return (
        {"q": "n d", "k": "n d", "v": "n d_v", "window": lambda _: window},
        {"n": n, "d": 3, "d_v": 2},
    )


def ring(q, k, v, window, slot, seen):
    """Write each token at its slot, and attend to what may be seen."""
    keys, values = (
        k.new_zeros(window, k.shape[1]),
        v.new_zeros(window, v.shape[1]),
    )
    outputs = []
    for i in range(len(q)):
        keys, values = keys.clone(), values.clone()
        keys[slot(i) % window], values[slot(i) % window] = k[i], v[i]
        now = seen(i, window)
        scores = keys[now] @ q[i] / q.shape[-1] ** 0.5
        outputs.append(scores.softmax(0) @ values[now])
    return torch.stack(outputs)


def filled(i, window):
    """The slots that hold a token by now."""
    return slice(min(i + 1, window))


def solution(q, k, v, window):
    """Slot i mod w; only the slots that are filled."""
    return ring(q, k, v, window, lambda i: i, filled)


@mistake
def empty_slots(q, k, v, window):
    """The first tokens are wrong, those after them right.

    Cause: Slots that nothing has been written to yet are attended to. Their
        keys are zeros, a score of 0, and a score of 0 is a vote.
    Cure: Attend to the first min(i + 1, window) slots.
    """
    return ring(q, k, v, window, lambda i: i, lambda i, w: slice(None))


@mistake
def stops_when_full(q, k, v, window):
    """Right until the ring is full; from then on the oldest stay for ever.

    Cause: A token that comes when all is full takes the last slot, and only
        that one is ever replaced.
    Cure: Slot i % window: the oldest makes room.
    """
    return ring(q, k, v, window, lambda i: min(i, window - 1), filled)


@mistake
def one_slot_short(q, k, v, window):
    """Your window has a key less.

    Cause: The ring has window - 1 slots, as if the token itself did not
        count.
    Cure: A window of w counts itself, and has w slots.
    """
    less = max(1, window - 1)
    return ring(q, k, v, less, lambda i: i, filled)


@mistake
def one_slot_more(q, k, v, window):
    """Your window has a key more.

    Cause: The ring has window + 1 slots: w keys back, and the token itself.
        Some libraries count so.
    Cure: Here a window of w counts itself, and has w slots.
    """
    return ring(q, k, v, window + 1, lambda i: i, filled)


@mistake
def read_before_written(q, k, v, window):
    """A token does not see itself.

    Cause: The ring is read before the token's own key is written.
    Cure: Write first, then attend.
    """
    own = [v[:1]]
    if len(q) > 1:
        before = ring(q[1:], k[:-1], v[:-1], window, lambda i: i, filled)
        own.append(before)
    return torch.cat(own)


@mistake
def everything_kept(q, k, v, window):
    """Right until the ring would be full; then it sees too much.

    Cause: Nothing is ever replaced: that is causal attention to all.
    Cure: Keep w slots, and let the oldest make room.
    """
    return ring(q, k, v, len(q), lambda i: i, filled)


@mistake
def starts_anew(q, k, v, window):
    """Right until the ring is full; then it forgets everything at once.

    Cause: When the ring starts over, only the slots of the new round are
        attended to.
    Cure: The slots of the last round still hold the nearest tokens.
    """
    now = ring(q, k, v, window, lambda i: i, lambda i, w: slice(i % w + 1))
    return now


@mistake
def values_left_behind(q, k, v, window):
    """Your weights belong to other tokens than your values.

    Cause: Keys go round in the ring, values stand in their order.
    Cure: Key and value of a token have the same slot.
    """
    outputs = []
    for i in range(len(q)):
        past = [j for j in range(i + 1) if i - j < window]
        slots = sorted(past, key=lambda j: j % window)
        weights = (k[slots] @ q[i] / q.shape[-1] ** 0.5).softmax(0)
        outputs.append(weights @ v[past])
    return torch.stack(outputs)


ROLLING = Exercise(
    "window/rolling",
    asks="causal attention within a window, from a ring of w slots",
    solution=solution,
    probes=(
        Probe("it is attention in the window", *tokens(7, 3), gradient=True),
        Probe("the first tokens see what there is", *tokens(2, 3)),
        Probe("a ring goes round more than once", *tokens(11, 4)),
        Probe("a window of 1 returns the values", *tokens(5, 1)),
        Probe("a window longer than the text is causal", *tokens(5, 7)),
        Probe("float64 stays float64", *tokens(7, 2), dtype=torch.float64),
    ),
    mistakes=(
        empty_slots,
        stops_when_full,
        one_slot_short,
        one_slot_more,
        read_before_written,
        everything_kept,
        starts_anew,
        values_left_behind,
    ),
)
