"""Places: devices on which this PyTorch can make numbers."""

from typing import Any

import torch


def is_device(x: Any) -> bool:
    """A device on which this PyTorch makes numbers, or the name of one."""
    if not is_device_or_text(x):
        return False
    if str(x) in ("cpu", "meta") or torch.compiler.is_compiling():
        return True
    try:
        torch.empty(0, device=x)
    except Exception:  # of many types: no such name, place or back end
        return False
    return True


def is_device_or_text(x: Any) -> bool:
    """What may be a device, or name one."""
    return isinstance(x, torch.device | str)


# What fits, what it is, and what is of its type.
WORDS = "a device that PyTorch has here, or its name"
DEVICE = is_device, WORDS, is_device_or_text
