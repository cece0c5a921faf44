"""Classes of norms whose eps stands in their code, or that have no shift."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from selfattn.doctor import examine


def rms_norm(x, weight, eps):
    wide = x.to(torch.promote_types(x.dtype, torch.float32))
    square = wide.pow(2).mean(-1, keepdim=True)
    return (wide * torch.rsqrt(square + eps)).to(x.dtype) * weight


def rms_norm_6(x, weight):
    return rms_norm(x, weight, 1e-6)


def layer_norm_12(x, weight, bias):
    return F.layer_norm(x, weight.shape, weight, bias, 1e-12)


def gain_forgotten(x, weight):
    return rms_norm(x, torch.ones_like(weight), 1e-6)


def bias_subtracted(x, weight, bias):
    return layer_norm_12(x, weight, -bias)


class Gain(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d))


class Fixed(Gain):
    def forward(self, x):
        return rms_norm(x, self.weight, 1e-8)


class Outside(Gain):
    def forward(self, x):
        square = x.pow(2).mean(-1, keepdim=True)
        return x / (square.sqrt() + 1e-6) * self.weight


class Summed(Gain):
    def forward(self, x):
        square = x.pow(2).sum(-1, keepdim=True)
        return x * torch.rsqrt(square + 1e-8) * self.weight


class WithoutShift(Gain):
    def forward(self, x):
        return F.layer_norm(x, self.weight.shape, self.weight, None, 1e-5)


class NotCentred(Gain):
    def forward(self, x):
        return x * torch.rsqrt(x.var(-1, False, keepdim=True) + 1e-5)


@pytest.mark.parametrize(
    ("norm", "kind"),
    [
        (Fixed, "rms-norm"),
        (WithoutShift, "layer-norm"),
        (rms_norm_6, "rms-norm"),
        (layer_norm_12, "layer-norm"),
    ],
)
def test_a_fixed_eps_and_a_lacking_shift_are_conventions(norm, kind):
    report = examine(norm, kind=kind)
    assert report.exit_code == 0, report


@pytest.mark.parametrize(
    ("norm", "kind"),
    [
        (Outside, "rms-norm"),
        (Summed, "rms-norm"),
        (NotCentred, "layer-norm"),
        (gain_forgotten, "rms-norm"),
        (bias_subtracted, "layer-norm"),
    ],
)
def test_a_mistake_beside_them_is_still_found(norm, kind):
    assert examine(norm, kind=kind).exit_code == 1


class Inside(nn.Module):
    """PyTorch's own norm, in a module of one's own."""

    def __init__(self, d, norm=nn.RMSNorm, **settings):
        super().__init__()
        self.norm = norm(d, **settings)

    def forward(self, x):
        return self.norm(x)


class Louder(Inside):
    def forward(self, x):
        return super().forward(x) + 1e-3 * x


@pytest.mark.parametrize("eps", [None, 1e-6, 1e-3])
def test_an_eps_is_set_in_the_norm_within(eps):
    """PyTorch's default for RMSNorm, None, was called "eps as a floor"."""
    one = Inside(7, eps=eps)
    assert examine(one, kind="rms-norm", time_limit=None).passed
    assert one.norm.eps == eps
    ill = examine(Louder(7, eps=eps), kind="rms-norm", time_limit=None)
    assert not ill.passed
