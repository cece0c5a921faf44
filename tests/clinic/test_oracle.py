"""The oracle tells ill from equivalent, on mutants made by hand."""

import pytest

from tools.measure.clinic.oracle import judged
from tools.measure.clinic.patients import patient

FUNCTION = """
import torch

def attend(q, k, v, mask=None):
    scores = q @ k.mT / q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    return scores.softmax(dim=-1) @ v

PATIENT = attend
FACTS = {}
INPUTS = {"q": "b h n d", "k": "b h m d", "v": "b h m e", "mask?": "keep n m"}
"""
MODULE = """
import torch
from torch import nn

class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.map = nn.Linear(6, 6)
        self.drop = nn.Dropout(0.2)

    def forward(self, x):
        w = torch.softmax(x @ self.map(x).mT, dim=-1)
        return self.drop(w) @ x

PATIENT = Layer()
FACTS = {"layout": "BND"}
INPUTS = {"x": "b n 6"}
"""


def verdict(text, was, becomes, kind="attention"):
    """What the oracle says of a text in which something was replaced."""
    assert was in text
    mutant = patient(text.replace(was, becomes), "mutant")
    return judged(patient(text), mutant, kind)


@pytest.mark.parametrize(
    ("was", "becomes", "why"),
    [
        ("** 0.5", "** 1.0", "value"),
        ("~mask", "mask", "value"),
        ("-torch.inf", "-1e9", "in float16: raises"),
        ("@ v", "@ v.detach()", "gradient"),
        ("@ v", "@ v.float()", "raises"),
        ("dim=-1) @ v", "dim=-1).float().to(v.dtype) @ v", "value"),
        ("scores = q @", "scores = q.mul_(2) @", "changes its input"),
        ("return scores", "k[:] = 0; return scores", "changes its input"),
        ("@ v\n", "@ v[:, :, :1]\n", "raises"),
    ],
)
def test_what_differs_is_ill(was, becomes, why):
    found = verdict(FUNCTION, was, becomes)
    assert (found.is_ in ("ill", "broken"), found.why[: len(why)]) == (
        True,
        why,
    )


@pytest.mark.parametrize(
    ("was", "becomes"),
    [
        ("q.shape[-1] ** 0.5", "k.size(-1) ** 0.5"),
        ("q @ k.mT", "(k @ q.mT).mT"),
        (".softmax(dim=-1)", ".log_softmax(dim=-1).exp()"),
    ],
)
def test_what_is_written_otherwise_is_equivalent(was, becomes):
    assert verdict(FUNCTION, was, becomes).is_ == "equivalent"


def test_what_always_raises_is_broken():
    found = verdict(
        FUNCTION, "scores = q @ k.mT", "scores = q @ k.mT.mT.mT[0]"
    )
    assert found.is_ in ("broken", "ill")
    assert verdict(FUNCTION, "return scores", "return score").is_ == "broken"


def test_a_promise_that_was_not_made_cannot_be_broken():
    told = FUNCTION.replace("FACTS = {}", 'FACTS = {"dtypes": ["float64"]}')
    assert verdict(told, "-torch.inf", "-1e9").is_ == "equivalent"


@pytest.mark.parametrize(
    ("was", "becomes", "why"),
    [
        ("self.drop(w)", "w", "in training: random False"),
        ("self.drop(w)", "torch.dropout(w, 0.2, True)", "value"),
        ("self.map(x)", "x", "value"),
    ],
)
def test_modules_are_asked_in_training_too(was, becomes, why):
    found = verdict(MODULE, was, becomes, "self-attention")
    assert (found.is_, found.why[: len(why)]) == ("ill", why)


def test_one_of_other_parameters_is_another():
    found = verdict(MODULE, "nn.Linear(6, 6)", "nn.Linear(6, 6, bias=False)")
    assert found.is_ == "another"


def test_what_a_module_noted_of_a_call_may_have_a_gradient():
    """Weights kept to be drawn ended the whole clinic: none copies them."""
    keeps = MODULE.replace("return self.drop(w)", "self.w = w; return w")
    assert verdict(keeps, "dim=-1)", "dim=-1)").is_ == "equivalent"
    assert verdict(keeps, "dim=-1)", "dim=-2)").is_ == "ill"


def test_what_is_never_learnt_keeps_its_numbers():
    """A frozen table was stirred, and mistakes in it could not be seen."""
    frozen = MODULE.replace(
        "        self.drop = nn.Dropout(0.2)",
        "        self.map.requires_grad_(False).weight.fill_(2)\n"
        "        self.drop = nn.Dropout(0.2)",
    )
    assert verdict(frozen, "fill_(2)", "fill_(3)").is_ == "ill"
