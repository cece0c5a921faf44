"""The doctor on LayerNorm and RMSNorm: functions, classes and modules."""

import pytest
import torch
from torch import nn

from selfattn.doctor import examine
from selfattn.layers import LayerNorm, RMSNorm


def examined(thing, kind, **facts):
    return examine(thing, kind=kind, time_limit=None, **facts)


@pytest.mark.parametrize(
    ("thing", "kind"),
    [
        (nn.LayerNorm, "layer-norm"),
        (nn.LayerNorm(7), "layer-norm"),
        (LayerNorm, "layer-norm"),
        (LayerNorm(7, eps=1e-3), "layer-norm"),
        (nn.RMSNorm, "rms-norm"),
        (nn.RMSNorm(7), "rms-norm"),
        (RMSNorm, "rms-norm"),
        (RMSNorm(7), "rms-norm"),
    ],
)
def test_a_healthy_norm_is_healthy(thing, kind):
    if isinstance(thing, nn.Module):
        before = {n: p.clone() for n, p in thing.named_parameters()}
    report = examined(thing, kind)
    assert report.passed, report
    if isinstance(thing, nn.Module):
        after = dict(thing.named_parameters())
        assert all(torch.equal(before[n], after[n]) for n in before)


class Tutorial(nn.Module):
    """As in a famous tutorial: Bessel's deviation, and eps outside."""

    def __init__(self, features, eps=1e-6):
        super().__init__()
        self.a_2 = nn.Parameter(torch.ones(features))
        self.b_2 = nn.Parameter(torch.zeros(features))
        self.eps = eps

    def forward(self, x):
        mean, std = x.mean(-1, keepdim=True), x.std(-1, keepdim=True)
        return self.a_2 * (x - mean) / (std + self.eps) + self.b_2


@pytest.mark.parametrize(
    ("thing", "kind", "name"),
    [
        (Tutorial, "layer-norm", "sample deviation plus eps"),
        (Tutorial(7), "layer-norm", "sample deviation plus eps"),
        (nn.LayerNorm, "rms-norm", "centred"),
    ],
)
def test_an_ill_norm_is_told_why(thing, kind, name):
    report = examined(thing, kind)
    assert report.mistake is not None, report
    assert report.mistake.name == name


class Louder(nn.LayerNorm):
    def forward(self, x):
        return 1.1 * super().forward(x)


def test_a_norm_without_a_name_for_its_fault_has_a_small_input():
    report = examined(Louder(5), "layer-norm")
    assert report.mistake is None
    assert "torch.tensor" in report.snippet


@pytest.mark.parametrize(
    ("thing", "words"),
    [
        (torch.relu, "a function of x, its parameters and eps"),
        (nn.Linear(3, 4), "parameters of sizes [4, 12]"),
    ],
)
def test_what_cannot_be_a_norm_is_asked_about(thing, words):
    assert words in examined(thing, "layer-norm").question


def test_in_what_float64_is_computed_is_a_convention():
    class InFloat32(RMSNorm):
        def forward(self, x):
            wide = x.float()
            square = wide.square().mean(-1, keepdim=True)
            plain = wide * torch.rsqrt(square + self.eps)
            return plain.to(x.dtype) * self.gain

    report = examined(InFloat32(5), "rms-norm")
    assert report.passed, report
    assert [m.name for m in report.remarks] == ["computed in float32"]
    report = examined(InFloat32(5), "rms-norm", precision="exact")
    assert report.mistake.name == "computed in float32"


class OfItsWidth(nn.Module):
    """As nn.RMSNorm without a gain, but of its own width alone."""

    def __init__(self, width, factor=1.0):
        super().__init__()
        self.root = factor * width**0.5

    def forward(self, x):
        return x / (x.square().sum(-1, keepdim=True) + 1e-5).sqrt() * self.root


def test_a_norm_without_parameters_may_be_of_one_width():
    """Its factor told of it, and it was asked at widths of ours."""
    told = {"eps": 1e-5 / 12, "dtypes": ["float32", "float64"]}
    report = examined(OfItsWidth(12), "rms-norm", **told)
    assert report.passed, str(report)
    assert report.lacking["any width"] == "its width is fixed"
    assert not examined(OfItsWidth(12, 1.1), "rms-norm", **told).passed


class OfTwo(nn.LayerNorm):
    """What has no bias of which one knows whether it is wanted."""

    def __init__(self, width, bias):
        super().__init__(width, bias=bias)


def test_a_class_that_is_made_of_more_than_a_width_is_asked_for_one():
    """It was different from the usual on all probes, since none was made."""
    report = examine(OfTwo, kind="layer-norm", time_limit=None)
    assert report.exit_code == 2
    assert "'bias'" in report.question, report
    made = examine(OfTwo(8, True), kind="layer-norm", time_limit=None)
    assert made.passed, made
    usual = examine(nn.LayerNorm, kind="layer-norm", time_limit=None)
    assert usual.passed, usual
