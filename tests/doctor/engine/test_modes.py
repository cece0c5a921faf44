"""What mode PyTorch is in is no part of the patient."""

import contextlib
import warnings

import pytest
import torch
from torch._C._autograd import _top_saved_tensors_default_hooks
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.overrides import (
    TorchFunctionMode,
    _get_current_function_mode_stack,
)
from torch.utils._python_dispatch import _get_current_dispatch_mode_stack

from selfattn import attention
from selfattn.doctor import examine
from selfattn.doctor.engine.modes import no_modes


@contextlib.contextmanager
def double_by_default():
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(torch.float32)


@contextlib.contextmanager
def meta_for_good():
    torch.set_default_device("meta")
    try:
        yield
    finally:
        torch.set_default_device(None)


@contextlib.contextmanager
def anomalies_looked_for():
    """Without the warning that it takes long."""
    with warnings.catch_warnings(action="ignore"):
        watched = torch.autograd.detect_anomaly()
    with watched:
        yield


def saved_elsewhere():
    """Saved as others, as to save memory."""
    return torch.autograd.graph.saved_tensors_hooks(
        torch.Tensor.bfloat16, torch.Tensor.float
    )


class Halving(TorchFunctionMode):
    """In which a softmax sums to one half."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        made = function(*args, **(kwargs or {}))
        return made / 2 if "softmax" in str(function) else made


MODES = {
    "functions": Halving,
    "fake tensors": FakeTensorMode,
    "anomaly": anomalies_looked_for,
    "saved tensors": saved_elsewhere,
    "meta for good": meta_for_good,
    "autocast": lambda: torch.autocast("cpu", torch.bfloat16),
    "inference": torch.inference_mode,
    "no_grad": torch.no_grad,
    "float64": double_by_default,
    "meta": lambda: torch.device("meta"),
}


@pytest.mark.parametrize("mode", MODES)
def test_a_sound_patient_is_healthy_whatever_mode_the_caller_is_in(mode):
    """Under autocast, or in inference mode, `attention` was called ill."""
    for limit in (20.0, None):
        with MODES[mode]():
            report = examine(
                attention, kind="attention", layout="any", time_limit=limit
            )
        assert report.passed, report


@pytest.mark.parametrize("mode", MODES)
def test_an_answer_is_right_whatever_mode_the_caller_is_in(mode):
    with MODES[mode]():
        report = examine(attention, exercise="dot_product/attention")
    assert report.passed, report


@pytest.mark.parametrize("mode", MODES)
def test_the_callers_mode_is_as_it_was(mode):
    def modes():
        return (
            torch.is_autocast_enabled("cpu"),
            torch.is_inference_mode_enabled(),
            torch.is_grad_enabled(),
            torch.get_default_dtype(),
            torch.get_default_device(),
            torch.is_anomaly_enabled(),
            _top_saved_tensors_default_hooks(False) is None,
            [type(x) for x in _get_current_function_mode_stack()],
            [type(x) for x in _get_current_dispatch_mode_stack()],
        )

    plain = modes()
    with MODES[mode]():
        before = modes()
        with pytest.raises(ValueError, match="spoilt"), no_modes():
            assert modes() == plain != before
            torch.set_default_dtype(torch.float16)
            torch.autograd.set_detect_anomaly(True)
            raise ValueError("spoilt")
        assert modes() == before


def test_a_layer_that_was_made_in_inference_mode_is_examined_like_any():
    with torch.inference_mode():
        layer = torch.nn.MultiheadAttention(6, 2, batch_first=True)
    report = examine(layer, kind="self-attention", time_limit=None)
    assert report.passed or "inference" in str(report).lower(), report


# Who leaves on that all tensors are to be fake ones has his own given back so.
LEFT_ON = [mode for mode in MODES if mode != "fake tensors"]


@pytest.mark.parametrize("mode", LEFT_ON)
def test_a_mode_that_a_patient_leaves_on_is_off_for_all_else(mode):
    """The doctor's own arithmetic was in it, and told of as its trouble."""

    def leaves_on(q, k, v):
        found = attention(q, k, v)
        MODES[mode]().__enter__()
        return found

    report = examine(leaves_on, kind="attention", layout="any")
    assert not report.trouble, report
    # What it does to whoever calls it is its own: the second call differs,
    # or has no gradient.
    if mode not in ("autocast", "no_grad"):
        assert report.passed, report


def kept_rows(q, k, v, mask=None):
    """Whose rows without a key are wiped out after the softmax."""
    scores = q @ k.mT / q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    return scores.softmax(-1).nan_to_num(0.0) @ v


def test_who_looks_for_anomalies_finds_none_that_is_wiped_out():
    """A notebook's `set_detect_anomaly`, and a mask was "upside down"."""
    with anomalies_looked_for():
        report = examine(
            kept_rows, kind="attention", mask="keep", time_limit=None
        )
    assert report.passed, report
