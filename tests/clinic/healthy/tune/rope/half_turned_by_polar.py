"""A code model's: half of the features turn, as complex numbers of halves."""

import functools
from typing import NamedTuple

import torch


class Spec(NamedTuple):
    rotary_pct: float = 1.0
    base: float = 10_000.0

    def width(self, features):
        return int(features * self.rotary_pct)


def phasors(width, base, start, stop):
    """(stop - start, width / 2) numbers on the unit circle, in double."""
    step = torch.arange(0, width, 2, dtype=torch.float64) / width
    when = torch.arange(start, stop, dtype=torch.float64)
    angle = when.unsqueeze(1) / base ** step.unsqueeze(0)
    return torch.polar(torch.ones_like(angle), angle)


def to_complex(real, imaginary):
    """Complex numbers have no half precisions: those are widened."""
    wide = torch.promote_types(real.dtype, torch.float32)
    return torch.complex(real.to(wide), imaginary.to(wide))


def rotate(spec, states, *, past_length=0):
    """states: (batch, head, token, feature), tokens that follow the past.

    Where the tensor ends in features that do not turn, they are kept as is.
    """
    n, features = states.shape[-2:]
    width = spec.width(features)
    turning, resting = states.split([width, features - width], dim=-1)
    z = to_complex(*turning.chunk(2, dim=-1))
    unit = phasors(width, spec.base, past_length, past_length + n)
    z = z * unit.to(device=z.device, dtype=z.dtype)
    turned = torch.cat((z.real, z.imag), dim=-1).to(states.dtype)
    return torch.cat((turned, resting), dim=-1)


PATIENT = functools.partial(rotate, Spec(rotary_pct=0.5))
FACTS = {
    "pairs": "halves",
    "layout": "BHND",
    "told": "offset",
    "name": "past_length",
    "part": 0.5,
    "dtypes": ("float64", "float32", "bfloat16"),
}
INPUTS = {"states": "b h n 4*d", "past_length": "int s"}
