"""A class whose instances are called: one of it is what is examined."""

import pytest
import torch
from torch import nn

from selfattn.doctor import examine
from selfattn.doctor.patient import made_of_nothing


class Called:
    """A plain class whose instances are called, as functions are."""

    def __init__(self, scale=0.5):
        self.scale = scale

    def __call__(self, q, k, v):
        scores = q @ k.mT * q.shape[-1] ** -self.scale
        return scores.softmax(dim=-1) @ v


class CalledToo(Called):
    """It has what is called from another class."""


class Weights:
    def __call__(self, scores):
        return scores.softmax(dim=-1)


class Table:
    def __call__(self, n):
        return torch.ones(n, n).tril().bool()


@pytest.mark.parametrize(
    ("thing", "kind"),
    [
        (Called, "attention"),
        (CalledToo, "attention"),
        (Weights, "softmax"),
        (nn.Softmax2d, "softmax"),
        (Table, "causal-mask"),
    ],
)
def test_of_any_class_that_makes_callables_one_is_examined(thing, kind):
    """However it was called, it raised: Attention() takes no arguments."""
    told = {"layout": "any"} if kind == "attention" else {}
    report = examine(thing, kind=kind, time_limit=None, **told)
    assert "takes no arguments" not in str(report)
    assert report.passed == (thing is not nn.Softmax2d), report


def test_a_plain_class_that_cannot_be_made_of_nothing_says_what_it_needs():
    class Asks(Called):
        def __init__(self, temperature):
            """It has no default."""

    report = examine(Asks, kind="attention", time_limit=None)
    assert report.exit_code == 2 and "temperature" in report.trouble
    assert made_of_nothing(Asks) is Asks
    assert made_of_nothing(nn.ReLU) is nn.ReLU
