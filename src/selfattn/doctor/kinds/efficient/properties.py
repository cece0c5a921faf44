"""What holds of every mechanism that averages values, whatever its weights.

For those that claim neither a mask nor a kernel: with random features, with
hashes, with a kernel that only they have. No probe knows a number that should
come out; see `experiments` for what they look at.
"""

from functools import partial
from typing import Any

import torch

from selfattn.doctor.exercises.dot_product.attention import (
    QKV_BATCH,
    QKV_HEADS,
)
from selfattn.doctor.kinds.efficient.experiments import (
    N,
    across,
    form,
    itself,
    later,
    learned,
    makes_no_table,
    sums,
    sums_of_real,
    told_apart,
    what_moves,
    who_is_seen,
)
from selfattn.doctor.kinds.efficient.needs import OF_PROPERTIES, with_needs
from selfattn.doctor.kinds.efficient.probes import flag
from selfattn.doctor.kinds.layer.experiments import twice
from selfattn.doctor.kinds.layer.probes import padded_in_front
from selfattn.doctor.probes import Inputs, Probe, in_other_order, louder

# As many keys as queries, and values as wide as keys, as in `probes`; but
# shorter, as an experiment calls a mechanism many times.
SHORT = {"n_q": 13, "n_k": 13, "d_v": 11}
LONG = {**SHORT, "n_q": 67, "n_k": 67}


def much_more(inputs: Inputs) -> None:
    """Keys whose exponentials no float32 can hold."""
    inputs["k"] += 90


def much_less(inputs: Inputs) -> None:
    """Keys whose exponentials are next to nothing."""
    inputs["k"] -= 12


def about_weights(x: dict[str, Any]) -> list[Probe]:
    """What the weights of a query sum to, on several inputs."""
    loud = louder("q", "k", times=8.0)
    rows = partial(Probe, inputs=x, tolerance=1e-3, experiment=sums)
    return [
        rows("the weights of a query sum to one", sizes=SHORT),
        rows("and in a longer sequence", sizes=LONG),
        rows("and where scores are loud", sizes=SHORT, change=loud),
        rows("and where keys are large", sizes=SHORT, change=much_more),
        rows("and where they are far below 0", sizes=SHORT, change=much_less),
    ]


def about_sight(x: dict[str, Any]) -> list[Probe]:
    """Who moves whom."""
    loud = louder("q", "k", times=8.0)
    several = {**SHORT, "n_q": 37, "n_k": 37}  # no multiple of a tile
    return [
        Probe("every value is seen", x, several, experiment=who_is_seen),
        Probe(
            "loud queries are told apart",
            x,
            LONG,
            change=loud,
            experiment=told_apart,
        ),
        Probe("each sequence is for itself", x, SHORT, experiment=across),
        Probe("each of q, k and v is learned", x, SHORT, experiment=learned),
        Probe("two calls agree", x, SHORT, experiment=twice),
    ]


def about_form(x: dict[str, Any]) -> list[Probe]:
    """Shapes, types, and what is made on the way."""
    one = {**SHORT, "n_q": 1, "n_k": 1}
    huge = {"n_q": N, "n_k": N, "d": 8, "d_v": 8, "batch": 1}
    shapes = partial(Probe, inputs=x, sizes=SHORT, experiment=form)
    few, wide = {**SHORT, "n_q": 5}, {**SHORT, "d_v": 13}
    found = [
        Probe("one token keeps its own value", x, one, tolerance=1e-3),
        shapes("the output has a value's shape"),
        shapes("inputs may lie in another order", change=in_other_order),
        shapes("heads are a part of the batch", inputs=QKV_HEADS),
        shapes("values wider than keys", sizes=wide, needs=("width",)),
        shapes("fewer queries than keys", sizes=few, needs=("length",)),
        Probe(
            "no table of scores is made", x, huge, experiment=makes_no_table
        ),
    ]
    types = (torch.float64, torch.float16, torch.bfloat16)
    return [
        *found,
        *(shapes(f"its type is kept, {t}", dtype=t) for t in types),
    ]


def about_causality(x: dict[str, Any]) -> list[Probe]:
    """What must hold where later keys are hidden."""

    def of_later(name: str) -> Probe:
        look = partial(later, name=name[0])
        words = f"later {name} do not matter, though loud"
        return Probe(words, x, SHORT, experiment=look)

    return [
        *(of_later(name) for name in ("queries", "keys", "values")),
        Probe("each token sees itself", x, SHORT, experiment=itself),
        Probe(
            "a causal query's weights sum to one",
            x,
            SHORT,
            tolerance=1e-3,
            experiment=sums,
        ),
    ]


def about_padding(x: dict[str, Any]) -> list[Probe]:
    """What must hold where some keys are padding."""

    def of(claim: str, name: str, padded: bool) -> Probe:
        look = partial(what_moves, name=name, padded=padded)
        return Probe(claim, x, SHORT, experiment=look)

    return [
        of("padded keys do not matter", "k", True),
        of("padded values do not matter", "v", True),
        of("beside padding, real values do", "v", False),
        Probe(
            "beside padding, weights sum to one",
            x,
            SHORT,
            tolerance=1e-3,
            experiment=sums_of_real,
        ),
    ]


def probes(always: bool) -> tuple[Probe, ...]:
    """All probes; ``always``: of a mechanism that is causal without a flag."""
    x = QKV_BATCH
    found = [*about_weights(x), *about_sight(x), *about_form(x)]
    found += about_causality(x if always else {**x, "causal": flag})
    # In front, because behind, a causal mechanism does not see it anyway.
    found += about_padding({**QKV_HEADS, "padding": padded_in_front})
    return with_needs(found, OF_PROPERTIES)
