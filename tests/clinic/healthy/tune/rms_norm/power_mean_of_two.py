"""A generalist: a norm for every power mean; a partial picks the second."""

import functools


def power_mean_norm(x, scale=None, *, p, eps, dim=-1):
    """Divide by the p-th root of the mean p-th power, with eps under it."""
    moment = x.abs().pow(p).mean(dim=dim, keepdim=True)
    y = x * (moment + eps).pow(-1.0 / p)
    if scale is None:
        return y
    shape = [1] * x.ndim
    shape[dim] = -1
    return y * scale.reshape(shape)


NORMS = {
    "mean_abs": functools.partial(power_mean_norm, p=1.0, eps=1e-6),
    "rms": functools.partial(power_mean_norm, p=2.0, eps=1e-6),
    "quartic": functools.partial(power_mean_norm, p=4.0, eps=1e-6),
}

PATIENT = NORMS["rms"]
FACTS = {"eps": 1e-6, "dtypes": ("float64", "float32", "bfloat16")}
INPUTS = {"x": "b n d", "scale": "d"}
OTHER_INPUTS = [
    {"x": "n d", "scale": "d"},
    {"x": "b h n d", "scale": "d"},
]
