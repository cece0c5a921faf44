"""The modes that PyTorch may be in, which are no part of any patient."""

import contextlib
from collections.abc import Iterator

import torch

AUTOCAST = ("cpu", "cuda", "xpu", "mps")


@contextlib.contextmanager
def no_modes() -> Iterator[None]:
    """Run under PyTorch's defaults, whatever the caller is in.

    Autocast would round the patient and not the reference, inference mode
    has no gradients, and a default type or device is the caller's alone.
    """
    dtype = torch.get_default_dtype()
    with contextlib.ExitStack() as stack:
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
