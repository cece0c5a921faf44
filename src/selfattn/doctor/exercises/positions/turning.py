"""Pairs of neighbouring features, and the angles by which they turn."""

import torch


def angles(x, offset, axis=-2, dtype=torch.float64):
    """Position times frequency, one row a token, one column a pair."""
    n, d = x.shape[axis], x.shape[-1]
    p = torch.arange(offset, offset + n).to(dtype)
    return p[:, None] * 10_000.0 ** (-torch.arange(0, d, 2).to(dtype) / d)


def turned(x, angle):
    """Each pair of neighbours, turned by these angles."""
    return by_waves(x, angle.cos().to(x.dtype), angle.sin().to(x.dtype))


def in_its_own_type(x, angle):
    """The same, in the number type that x and the angles come to."""
    return by_waves(x, angle.cos(), angle.sin())


def by_waves(x, cos, sin):
    """Each pair of neighbours, turned by angles of these cosines and sines."""
    a, b = x[..., 0::2], x[..., 1::2]
    pairs = torch.stack((a * cos - b * sin, a * sin + b * cos), dim=-1)
    return pairs.flatten(-2)
