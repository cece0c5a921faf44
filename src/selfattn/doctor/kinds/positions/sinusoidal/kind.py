"""Tables of sines and cosines: one row a position."""

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from selfattn.doctor.exercises.positions.sinusoidal import SINUSOIDAL
from selfattn.doctor.kind import Fact, Kind
from selfattn.doctor.patient import Facts, parameters

WIDTHS = ("d_model", "dim", "d", "embed_dim", "n_embd", "hidden", "channels")
NEEDS = {
    "an odd last feature is a sine alone": ("odd",),
    "a single feature is sin p": ("odd", "single"),
    "position 5000 is as right as position 5": ("long",),
}

REFERENCE = dataclasses.replace(
    SINUSOIDAL,
    name="sinusoidal",
    probes=tuple(
        dataclasses.replace(probe, needs=NEEDS.get(probe.asks, ()))
        for probe in SINUSOIDAL.probes
    ),
    mistakes=list(SINUSOIDAL.mistakes),
    optional={
        "odd": "an odd number of features",
        "single": "a single feature",
        "long": "5000 positions",
    },
)


def waves(angle: Tensor) -> Tensor:
    """Sines of the even features' angles, cosines of the odd ones'."""
    even = torch.arange(angle.shape[-1]) % 2 == 0
    return torch.where(even, angle.sin(), angle.cos()).float()


def numbered(n: int, d_model: int) -> tuple[Tensor, Tensor]:
    """Positions as a column, and 2i of each feature as a row."""
    f = torch.arange(d_model, dtype=torch.float64)
    return torch.arange(n, dtype=torch.float64)[:, None], 2 * (f // 2)


@REFERENCE.mistake
def exponent_and_base_exchanged(n, d_model):
    """All features but the first turn at almost the same speed.

    Cause: The exponent is raised to a power, f ** 1e-4, instead of the base
        to that of the exponent.
    Cure: 10000 ** (-2i / d).
    Chapter: positions
    Thread: https://github.com/ivanvovk/WaveGrad/issues/12
    """
    p, two_i = numbered(n, d_model)
    return waves(p * (two_i / d_model) ** 1e-4)


@REFERENCE.mistake
def divided_before_it_is_halved(n, d_model):
    """Each pair turns at e⁻² of the speed of the last: most stand still.

    Cause: -log(10000) / d // 2 is a whole number, such as -1, for // comes
        last.
    Cure: -log(10000) / d, or / (d // 2), with the brackets.
    Chapter: positions
    Thread: https://github.com/zju3dv/LoFTR/issues/41
    """
    p, two_i = numbered(n, d_model)
    step = -math.log(10_000.0) / max(d_model, 2) // 2
    return waves(p * (two_i * step).exp())


@REFERENCE.mistake
def cosines_one_step_on(n, d_model):
    """Sine and cosine of a pair turn at different speeds.

    Cause: The sine's exponent is 2f / d and the cosine's 2 (f + 1) / d, of
        features f = 0, 2, 4, …
    Cure: Both have the exponent f / d of the even feature.
    Chapter: positions
    Thread: https://github.com/SamLynnEvans/Transformer/issues/25
    """
    p, two_i = numbered(n, d_model)
    odd = torch.arange(d_model) % 2
    return waves(p * 10_000.0 ** (-2 * (two_i + odd) / d_model))


@REFERENCE.mistake
def degrees(n, d_model):
    """Even the fastest feature turns slowly.

    Cause: The angles are taken for degrees.
    Cure: Radians.
    Chapter: positions
    """
    p, two_i = numbered(n, d_model)
    return waves(torch.deg2rad(p * 10_000.0 ** (-two_i / d_model)))


@REFERENCE.mistake
def position_divided_as_a_whole_number(n, d_model):
    """All pairs turn alike, as fast as the first.

    Cause: The exponent is divided as whole numbers, 2i // d, which is 0.
    Cure: 2i / d.
    Chapter: positions
    Thread: https://github.com/Kyubyong/transformer/pull/81
    """
    p, two_i = numbered(n, d_model)
    return waves(p * 10_000.0 ** -(two_i // d_model))


def look(thing: Any, said: Facts) -> dict[str, Any]:
    """Whether its width comes first."""
    names = [name.lower() for name in parameters(thing)]
    first = bool(names) and names[0] in WIDTHS
    return {"width_first": first}


def adapt(thing: Any, facts: Facts) -> Callable[..., object]:
    """Call it with its two numbers; give its table our axes and order."""

    def sinusoidal(n: int, d_model: int) -> object:
        if facts.get("call"):
            made = facts["call"](thing, n, d_model)
        elif facts["width_first"]:
            made = thing(d_model, n)
        else:
            made = thing(n, d_model)
        while isinstance(made, Tensor) and made.ndim > 2 and len(made) == 1:
            made = made[0]
        if not isinstance(made, Tensor) or made.ndim != 2:
            return made
        return in_pairs(made) if facts["layout"] == "halves" else made

    return sinusoidal


def in_pairs(made: Tensor) -> Tensor:
    """A table of all sines, then all cosines, with the two side by side."""
    d = made.shape[-1]
    order = torch.empty(d, dtype=torch.long)
    order[0::2] = torch.arange((d + 1) // 2)
    order[1::2] = torch.arange((d + 1) // 2, d)
    return made[:, order]


KIND = Kind(
    "sinusoidal",
    asks="of n and d_model, the Transformer's table of positions",
    exercise=lambda thing, facts: REFERENCE,
    facts={
        "layout": Fact(
            "how the features are ordered",
            {
                "pairs": "each sine beside its cosine",
                "halves": "all sines, then all cosines",
            },
        ),
        "width_first": Fact("whether it is called with (d_model, n)"),
        "call": Fact("call(patient, n, d_model) returns the table"),
    },
    look=look,
    adapt=adapt,
)
