"""What holds of every attention layer, whatever its formula.

For modules whose projections are not recognised, or that do more than the
plain formula: rotate, normalise, add a bias for positions. None of these
probes knows a number that should come out; each changes an input and sees
which outputs move.
"""

from functools import partial
from typing import Any

import torch

from selfattn.doctor.kinds.layer import probes as values
from selfattn.doctor.kinds.layer.experiments import (
    form,
    heeds_padding,
    learns,
    matters,
    padding_is_heard_less,
    slopes,
    steps,
    sums,
    twice,
    what_learns,
    what_padding_moves,
    which_sequences_meet,
    who_sees_what_is_real,
    who_sees_whom,
)
from selfattn.doctor.probes import Probe

LONGEST = {"n": 11}  # odd, and no multiple of a tile


PARTS = (
    ("q", "the projection of the queries tells", "projection not used"),
    ("k", "the projection of the keys tells", "projection not used"),
    ("v", "the projection of the values tells", "projection not used"),
    ("out", "the projection of the output tells", "no output projection"),
)


def without_masks(x: dict[str, Any]) -> list[Probe]:
    """The probes on which everything is seen."""
    probe = partial(Probe, inputs=x)
    return [
        probe("who sees whom", experiment=who_sees_whom),
        probe(
            "who sees whom in a longer sequence",
            sizes=LONGEST,
            needs=("length",),  # a table of positions may end before it
            experiment=who_sees_whom,
        ),
        probe("each sequence is for itself", experiment=which_sequences_meet),
        probe("one token alone", sizes={"n": 1, "n_q": 1}, experiment=form),
        probe("the output has x's shape", experiment=form),
        probe("float64", dtype=torch.float64, experiment=form),
        probe("float16", dtype=torch.float16, experiment=form),
        probe("bfloat16", dtype=torch.bfloat16, experiment=form),
        probe("loud scores", change=values.loud, experiment=form),
        *of_what_is_computed(x),
    ]


def of_what_is_computed(x: dict[str, Any]) -> list[Probe]:
    """The probes of how it is computed, and of what makes a difference."""
    probe = partial(Probe, inputs=x)
    return [
        probe(
            "in evaluation, two calls agree",
            experiment=twice,
            tells="dropout that never ends",
        ),
        probe("something is learned", experiment=what_learns),
        probe(
            "gradients are those of its numbers",
            experiment=slopes,
            tells="detached",
        ),
        probe(
            "each number that was made can learn",
            experiment=learns,
            tells="detached",
        ),
        probe(
            "float32 is computed in float32",
            experiment=steps,
            tells="computed in half precision",
        ),
        probe("rows of weights sum to one", experiment=sums),
        *(
            probe(claim, experiment=matters(part), tells=known)
            for part, claim, known in PARTS
        ),
    ]


def with_masks(x: dict[str, Any]) -> list[Probe]:
    """The probes on which something is hidden."""
    flag = {**x, "causal": values.flag}
    masked = {**x, "mask": values.table}
    # In front, because behind, a causal layer does not see it anyway.
    padded = {**x, "padding": values.padded_in_front}
    return [
        Probe("the mask is kept", masked, experiment=who_sees_whom),
        Probe("padding is not seen", padded, experiment=what_padding_moves),
        Probe(
            "beside padding, what is real is seen, and nothing else",
            padded,
            experiment=who_sees_what_is_real,
        ),
        Probe("padding makes a difference", padded, experiment=heeds_padding),
        Probe(
            "what is padding is heard less than what is real",
            padded,
            experiment=padding_is_heard_less,
        ),
        Probe("the flag hides later tokens", flag, experiment=who_sees_whom),
        Probe("under the flag, too, all is finite", flag, experiment=form),
    ]


def exact(x: dict[str, Any]) -> Probe:
    """What one asks of whom float64 was told."""
    return Probe(
        "float64 is computed in float64",
        x,
        dtype=torch.float64,
        experiment=steps,
        tells="computed in float32",
    )


def of_widths(
    d_model: int, d_context: int, cross: bool, fine: bool = False
) -> tuple[Probe, ...]:
    """All probes of a layer of these widths; ``fine``: in float64, too."""
    x = values.ACROSS if cross else values.WITHIN
    listed = [*without_masks(x), *with_masks(x), *([exact(x)] if fine else [])]
    return values.as_wide(listed, d_model, d_context)
