"""Snippets: code that makes the very tensor it stands for."""

import math

import torch

from selfattn.doctor.engine.outcome import alike
from selfattn.doctor.patient import Call
from selfattn.doctor.probes import numbers
from selfattn.doctor.report import Difference
from selfattn.doctor.report.snippets import (
    MAX_LINES,
    MAX_SHOWN,
    as_code,
    result,
    rounded,
    snippet_of_calls,
    wrapped,
)

NAN, INF = math.nan, math.inf


def test_code_makes_the_tensor_that_it_stands_for():
    scope = {"torch": torch}
    for x in (
        numbers(2, 3),
        numbers(3, 2).mT,
        numbers(2, dtype=torch.float16),
        torch.tensor([True, False]),
        torch.tensor([INF, -INF]),
        torch.tensor([NAN]),
    ):
        made = eval(as_code(x), scope)
        assert alike(made, x) and made.stride() == x.stride()
    assert as_code(torch.zeros(MAX_SHOWN)) is not None
    assert as_code(torch.zeros(MAX_SHOWN + 1)) is None
    assert as_code(None) == "None"


def test_numbers_are_shown_to_four_places_and_lines_are_broken():
    assert rounded(torch.tensor([1 / 3, -1e-9])) == "[0.3333, 0.0]"
    long = wrapped("x = torch.tensor([" + "0.25, " * 30 + "])")
    assert max(map(len, long.splitlines())) <= 78
    assert wrapped("# " + "a " * 60).count("\n    # ") == 1


def test_a_cache_is_what_the_call_before_gave_back():
    """Its thousand numbers were written out, call after call."""
    kept = [(torch.ones(2, 3), torch.zeros(2, 3))]
    chunk = torch.tensor([[1]])
    calls = [Call((chunk, None), {}), Call((chunk,), {"cache": kept})]
    found = Difference("value", "It is off.")
    code = snippet_of_calls(calls, ("decoder",), found, ("ids", "cache"))
    assert [line.strip() for line in code.splitlines()] == [
        "ids = torch.tensor([[1]])",
        "cache = None",
        "_, cache = decoder(ids, cache)",
        "ids = torch.tensor([[1]])",
        "_, cache = decoder(ids, cache=cache)",
        "# It is off.",
    ]
    many = snippet_of_calls(calls * MAX_LINES, ("f",), found, ("x", "cache"))
    assert many == ""


def test_what_differs_late_is_printed_so_far():
    """A student saw "yours" and "expected" alike to the last digit shown."""
    yours, expected = torch.tensor([1.66210]), torch.tensor([1.662108])
    shown = result(Difference("value", "", yours, expected))
    assert shown == ["# yours: [1.66209996]", "# expected: [1.66210794]"]
