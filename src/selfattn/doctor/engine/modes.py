"""The modes that PyTorch may be in, which are no part of any patient."""

import contextlib
from collections.abc import Iterator

import torch
from torch._C._autograd import (
    _pop_saved_tensors_default_hooks,
    _push_saved_tensors_default_hooks,
    _top_saved_tensors_default_hooks,
)
from torch.overrides import (
    _get_current_function_mode_stack,
    _len_torch_function_stack,
    _pop_mode,
    _push_mode,
)
from torch.utils import _device
from torch.utils._python_dispatch import _disable_current_modes

AUTOCAST = ("cpu", "cuda", "xpu", "mps")


@contextlib.contextmanager
def no_modes() -> Iterator[None]:
    """Run under PyTorch's defaults, whatever the caller is in.

    Autocast would round the patient and not the reference, inference mode
    has no gradients, and a default type or device is the caller's alone.
    """
    dtype = torch.get_default_dtype()
    with contextlib.ExitStack() as stack:
        stack.enter_context(_disable_current_modes())  # as of fake tensors
        stack.enter_context(functions_as_they_are())
        stack.enter_context(unwatched())
        stack.enter_context(torch.inference_mode(False))
        stack.enter_context(torch.enable_grad())
        for device in AUTOCAST:
            if torch.is_autocast_enabled(device):
                stack.enter_context(torch.autocast(device, enabled=False))
        if torch.get_default_device() != torch.device("cpu"):
            stack.enter_context(torch.device("cpu"))
        torch.set_default_dtype(torch.float32)
        try:
            yield
        finally:
            torch.set_default_dtype(dtype)


@contextlib.contextmanager
def unwatched() -> Iterator[None]:
    """Have nobody look on as gradients are made.

    Anomaly detection raises where a NaN on the way back is none at its end,
    and hooks of saved tensors may hand back others.
    """
    anomaly = torch.is_anomaly_enabled(), torch.is_anomaly_check_nan_enabled()
    hooks = hooks_taken()
    torch.autograd.set_detect_anomaly(False)
    try:
        yield
    finally:
        torch.autograd.set_detect_anomaly(*anomaly)
        hooks_taken()
        for pair in hooks:
            _push_saved_tensors_default_hooks(*pair)


def hooks_taken() -> list[tuple]:
    """The hooks of all tensors that are saved, which are none afterwards."""
    taken: list[tuple] = []
    while pair := _top_saved_tensors_default_hooks(False):
        taken.insert(0, pair)
        _pop_saved_tensors_default_hooks()
    return taken


@contextlib.contextmanager
def functions_as_they_are() -> Iterator[None]:
    """Have PyTorch's functions do what they do, and no mode look on."""
    stack = _get_current_function_mode_stack()
    put_back([])
    try:
        yield
    finally:
        put_back(stack)


def put_back(stack: list) -> None:
    """Have these modes of functions, and no others."""
    for _ in range(_len_torch_function_stack()):
        _pop_mode()
    for mode in stack:
        _push_mode(mode)


@contextlib.contextmanager
def modes_kept() -> Iterator[None]:
    """Have the modes afterwards that there were before.

    Who enters one and does not leave it would have what comes after, the
    doctor's own arithmetic, in it as well.
    """
    dtype = torch.get_default_dtype()
    cast = {
        device: (
            torch.is_autocast_enabled(device),
            torch.get_autocast_dtype(device),
        )
        for device in AUTOCAST
    }
    stack = _get_current_function_mode_stack()
    device, set_device = _device.CURRENT_DEVICE, default_device()
    # Both put back, when they are left, what was before them.
    with unwatched(), torch.inference_mode(False), torch.enable_grad():
        try:
            yield
        finally:
            torch.set_default_dtype(dtype)
            for where, (enabled, narrow) in cast.items():
                torch.set_autocast_enabled(where, enabled)
                torch.set_autocast_dtype(where, narrow)
            if _get_current_function_mode_stack() != stack:
                put_back(stack)
            _device.CURRENT_DEVICE = device
            torch._GLOBAL_DEVICE_CONTEXT.device_context = set_device


def default_device() -> object:
    """What `torch.set_default_device` keeps of its last call."""
    return getattr(torch._GLOBAL_DEVICE_CONTEXT, "device_context", None)
