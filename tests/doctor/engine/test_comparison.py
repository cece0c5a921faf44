"""Comparison: the worst difference first, up to rounding of the type."""

import math

import pytest
import torch

from selfattn.doctor.engine.comparison import compare, difference
from selfattn.doctor.engine.outcome import Outcome

NAN, INF = math.nan, math.inf


def test_how_it_fails_does_not_matter_where_the_solution_fails():
    assert difference(Outcome(error="a"), Outcome(error="b")) is None
    only = difference(Outcome(error="E"), Outcome(value=1))
    assert only.sort == "raises" and only.sentence == "It raises E."
    other = difference(Outcome(value=1), Outcome(error="E"))
    assert other.sentence == "It raises nothing."


def test_changed_inputs_count_before_values():
    found = difference(Outcome(1, modified=("q", "k")), Outcome(2))
    assert (
        found.sort == "modifies" and "It changes q and k, " in found.sentence
    )
    assert difference(Outcome(1), Outcome(2)).sort == "value"


def test_nan_is_a_fault_only_where_a_number_was_due():
    due, row = torch.tensor([NAN, 1.0]), torch.tensor([NAN, NAN])
    assert compare(due, due, None) is None
    assert "NaN in 1 of 2 numbers" in compare(row, due, None).sentence
    one = compare(torch.tensor([INF, 1.0]), torch.ones(2), None)
    assert "infinity in 1 of 2" in one.sentence
    assert compare(torch.ones(2), due, None).sort == "value"


@pytest.mark.parametrize(
    ("dtype", "small", "large"),
    [
        (torch.float64, 1e-10, 1e-7),
        (torch.float32, 1e-6, 1e-3),
        (torch.float16, 2e-3, 2e-2),
        (torch.bfloat16, 2e-2, 1e-1),
        (torch.int64, 0, 1),
    ],
)
def test_rounding_is_that_of_the_type(dtype, small, large):
    one = torch.ones(3, dtype=dtype)
    assert compare(one + small, one, None) is None
    assert compare(one + large, one, None).sort == "value"


def test_gradients_are_compared_where_one_is_due_or_given():
    x = torch.ones(2)

    def with_gradient(gradient, error=None):
        return Outcome(x, gradients={"x": gradient}, gradient_error=error)

    none, some = with_gradient(None), with_gradient(x)
    assert difference(none, none) is None
    assert "No gradient flows back to x" in difference(none, some).sentence
    assert "A gradient flows" in difference(some, none).sentence
    assert difference(with_gradient(2 * x), some).sort == "gradient"
    failed = with_gradient(None, "E")
    assert difference(failed, failed) is None
    assert "it raises E." in difference(failed, some).sentence
    assert "it raises nothing." in difference(some, failed).sentence


def test_types_are_compared_in_words():
    assert compare((1, 2), torch.ones(2), None).sentence.endswith("alone.")
    assert "True, but" not in compare(True, 1, None).sentence
    assert compare(1, 1, None) is None and compare(1, 2, None).sort == "value"
    double = torch.ones(2, dtype=torch.float64)
    assert compare(torch.ones(2), double, None).sort == "dtype"
