"""A functional library: the weight goes first, a decorator widens numbers."""

import functools

import torch


def in_at_least(floor):
    """Compute no less precisely than this, and give back what came in."""

    def decorate(fn):
        @functools.wraps(fn)
        def widened(weight, x, **options):
            wide = torch.promote_types(x.dtype, floor)
            y = fn(weight.to(wide), x.to(wide), **options)
            return y.to(x.dtype)

        return widened

    return decorate


@in_at_least(torch.float32)
def rms_norm(weight, x, *, eps=1e-5):
    """weight: (d,), x: (..., d)"""
    d = x.shape[-1]
    energy = torch.linalg.vecdot(x, x).unsqueeze(-1)
    return torch.einsum("...d,d->...d", x, weight) / (energy / d + eps) ** 0.5


PATIENT = rms_norm
FACTS = {
    "eps": 1e-5,
    "dtypes": ("float64", "float32", "float16", "bfloat16"),
}
INPUTS = {"x": "b n d", "weight": "d"}
OTHER_INPUTS = [
    {"x": "n d", "weight": "d"},
    {"x": "b h n d", "weight": "d"},
]
