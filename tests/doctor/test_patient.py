"""Patients: called as their facts tell, and recorded before the call."""

import warnings

import pytest
import torch

from selfattn.doctor import examine
from selfattn.doctor.patient import Call, Patient, Recorder, parameters


def doubled(x):
    return 2 * x


def test_calls_are_recorded_as_they_were_before_the_call():
    def spoil(x, times=1):
        return x.mul_(times)

    x = torch.ones(2)
    patient, calls = Patient(spoil, {}).recorded()
    patient(x, times=torch.tensor(3.0))
    patient(x)
    assert calls[0].arguments[0].tolist() == [1, 1]
    assert calls[0].named["times"].item() == 3
    assert calls[1].arguments[0].tolist() == [3, 3] and len(calls) == 2


def test_a_recorded_module_stays_recorded_in_another_type():
    calls: list[Call] = []
    layer = Recorder(torch.nn.Linear(2, 2), calls)
    layer.to(torch.float64)(torch.ones(1, 2, dtype=torch.float64))
    assert len(calls) == 1 and layer.in_features == 2
    import copy

    copy.deepcopy(Recorder(torch.nn.Linear(2, 2), calls))(torch.ones(1, 2))
    assert len(calls) == 2


def test_parameters_of_functions_modules_and_what_is_written_in_c():
    assert parameters(lambda a, *b, c=1, **d: 0) == ["a", "b", "c"]
    assert parameters(torch.nn.Linear(1, 1)) == ["input"]
    sdpa = parameters(torch.nn.functional.scaled_dot_product_attention)
    assert sdpa[:4] == ["query", "key", "value", "attn_mask"]
    assert parameters(object()) == []


def test_a_patient_is_called_as_its_facts_tell():
    def adapt(thing, facts):
        return lambda x: thing(x + facts["more"])

    assert Patient(doubled, {"more": 1}, adapt)(2) == 6


async def _later(q, k, v):
    return v


async def _later_still(q, k, v):
    yield v


def _begun(q, k, v):
    yield v


class _Called:
    async def __call__(self, q, k, v):
        return v


class _Module(torch.nn.Module):
    async def forward(self, q, k, v):
        return v


@pytest.mark.parametrize(
    "thing", [_later, _later_still, _begun, _Called(), _Module()]
)
def test_nothing_is_said_of_what_gives_its_answer_later(thing):
    """It was "different from the usual", as if it gave another tensor."""
    report = examine(thing, kind="attention", time_limit=None)
    assert "it is asynchronous, or a generator" in report.trouble
    assert report.exit_code == 2


def test_nothing_is_said_of_a_scripted_module():
    """Its signature has no names, which was called the doctor's trouble."""
    with warnings.catch_warnings(action="ignore"):
        scripted = torch.jit.script(torch.nn.Linear(4, 4))
    report = examine(scripted, kind="self-attention", time_limit=None)
    assert report.trouble.startswith("Nothing can be said: it is scripted")
