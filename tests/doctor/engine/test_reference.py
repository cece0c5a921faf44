"""A reference that fails is the doctor's own trouble, never a clean bill."""

import pytest
import torch
from torch import nn

from selfattn import attention
from selfattn.doctor import Exercise, Probe, diagnose, examine
from selfattn.doctor.exercises import find, names
from selfattn.doctor.self_test import banks

BANKS = banks()


def fails(x):
    raise ZeroDivisionError("as ever")


TABLES = {
    "meta": torch.zeros(5, 8, device="meta"),
    "sparse": torch.zeros(5, 8).to_sparse(),
    "no columns": torch.zeros(5, 0),
    "no rows": torch.zeros(0, 8),
}


@pytest.mark.parametrize("table", TABLES)
def test_who_fails_with_the_reference_is_not_healthy(table):
    """Both raised, and so they agreed: `1 / 0` was healthy on 7 probes."""
    facts = {"kind": "positions", "table": TABLES[table], "time_limit": None}
    report = examine(fails, **facts)
    assert not report.passed and report.exit_code == 2
    assert report.trouble.startswith("The trouble is the doctor's own: ")
    assert "as ever" not in str(report)


MODULES = {
    "self-attention": lambda: nn.MultiheadAttention(6, 2, batch_first=True),
    "encoder-block": lambda: nn.TransformerEncoderLayer(6, 2, 8),
    "decoder-block": lambda: nn.TransformerDecoderLayer(6, 2, 8),
}


@pytest.mark.parametrize("kind", MODULES)
def test_a_module_without_numbers_is_not_healthy(kind):
    with torch.device("meta"):
        module = MODULES[kind]()
    report = examine(module, kind=kind, time_limit=None)
    assert report.exit_code == 2 and "on the device meta" in report.trouble
    assert "I found" not in str(report)  # nothing was


@pytest.mark.parametrize(
    ("kind", "table"),
    [
        ("positions", torch.zeros(5)),
        ("positions", "table"),
        ("efficient", torch.eye(5)),
    ],
)
def test_a_fact_of_the_wrong_type_is_no_fault_of_the_patient(kind, table):
    with pytest.raises(ValueError, match="table must be a"):
        examine(attention, kind=kind, table=table, time_limit=None)


def raised(x, error=ValueError):
    raise error


def test_an_answer_may_be_asked_to_refuse():
    asked = Probe("it is refused", {"x": "n d"}, refused=True)
    exercise = Exercise("x/y", "z", raised, (asked,))
    assert diagnose(raised, exercise).passed
    assert diagnose(lambda x: raised(x, KeyError), exercise).passed
    assert not diagnose(lambda x: x, exercise).passed


def test_a_reference_whose_gradient_fails_is_no_measure_either():
    probe = Probe("it is itself", {"x": "n d"}, gradient=True)

    def cut(x):
        return x * x.numpy().sum()

    report = diagnose(cut, Exercise("x/y", "z", cut, (probe,)))
    assert report.exit_code == 2 and "Can't call numpy()" in report.trouble


@pytest.mark.parametrize("name", [*names(), *BANKS])
def test_no_reference_fails_where_it_should_not(name):
    """And it does where a right answer refuses."""
    exercise = find(name) if name in names() else BANKS[name]
    report = diagnose(exercise.solution, exercise)
    assert report.passed, report
