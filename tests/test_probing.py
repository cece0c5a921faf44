"""A linear probe reads what is there, and says when there is nothing."""

import math

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from selfattn.probing import Probe


def test_a_probe_reads_what_is_there_and_not_what_is_not():
    torch.manual_seed(0)
    x, new = torch.randn(2, 600, 8)
    labels, truth = ((y[:, 1] > y[:, 2]).long() for y in (x, new))
    assert Probe(x, labels).right(new, truth) > 0.95
    chance = torch.randint(2, (600,))
    assert abs(Probe(x, chance).right(new, chance) - 0.5) < 0.15
    product = (x[:, 0] * x[:, 1] > 0).long()  # not linear
    assert Probe(x, product).right(x, product) < 0.65


def test_a_probe_is_ridge_regression_on_classes():
    """Against PyTorch's least squares on rows that stand for the penalty."""
    x, labels = torch.randn(50, 4).double(), torch.randint(3, (50,))
    probe = Probe(x, labels, penalty=0.1)
    classes = nn.functional.one_hot(labels, 3).double()
    centred = torch.cat([x - x.mean(0), math.sqrt(5) * torch.eye(4).double()])
    wanted = torch.cat([classes - classes.mean(0), torch.zeros(4, 3).double()])
    expected = torch.linalg.lstsq(centred, wanted).solution
    assert_close(probe.weight, expected)
    far = x + 100.0  # a shift of everything changes nothing
    moved = Probe(far, labels, penalty=0.1)
    assert torch.equal(moved.read(far), probe.read(x))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_probe_reads_as_well_in_half_precision(dtype):
    """The mean was rounded to x's own type before it was subtracted: where
    all representations lie far from zero, chance was all that was read.
    """
    torch.manual_seed(0)
    labels = torch.randint(2, (400,))
    x = 200.0 + torch.randn(400, 6).round() + 4.0 * labels[:, None]
    x = x.to(dtype)
    half, wide = Probe(x, labels), Probe(x.double(), labels)
    assert_close(half.weight, wide.weight, atol=0, rtol=1e-12)
    assert_close(half.mean, wide.mean, atol=0, rtol=1e-12)
    assert torch.equal(half.read(x), wide.read(x.double()))
    assert half.right(x, labels) > 0.97
    ends = torch.tensor([[6e4], [-6e4]]).to(dtype)  # their distance is no half
    assert Probe(ends, torch.tensor([0, 1])).read(ends).tolist() == [0, 1]


def test_a_probe_that_cannot_be_solved_says_so():
    """Squares beyond float64 left weights of NaN, and all was of class 0;
    two features alike and no penalty to speak of, PyTorch's own error.
    """
    labels = torch.tensor([0, 1, 1])
    x = torch.tensor([[1.0], [2.0], [4.0]]).double()
    far = 1e200 * torch.randn(3, 4).double()  # of these LAPACK has no answer
    for bad, penalty in (
        (x * 1e200, 1.0),
        (far, 1.0),
        (x.expand(3, 2), 1e-300),
    ):
        with pytest.raises(ValueError, match="x must be numbers whose squ"):
            Probe(bad, labels, penalty=penalty)


def test_a_probe_of_no_features_reads_the_most_frequent_class():
    """Of no equations, LAPACK would have no smallest eigenvalue."""
    x, labels = torch.ones(5, 0), torch.tensor([0, 1, 1, 2, 1])
    assert Probe(x, labels).read(x).tolist() == [1] * 5


@pytest.mark.parametrize(
    ("size", "penalty"), [(3e8, 1e-3), (3e6, 1e-9), (1e12, 1e-3)]
)
def test_a_penalty_too_small_to_choose_between_alike_features_is_named(
    size, penalty
):
    """One was the sum of two others, and rounding chose: what was read was off
    by as much as classes are apart.
    """
    x = size * torch.randn(30, 8).double()
    x[:, 2] = x[:, 0] + x[:, 1]
    labels = torch.arange(30) % 3
    with pytest.raises(ValueError, match="penalty large enough to be seen"):
        Probe(x, labels, penalty=penalty)
    other = Probe(x[:, 1:], labels, penalty=penalty)  # of none that are alike
    assert other.right(x[:, 1:], labels) > 1 / 3
