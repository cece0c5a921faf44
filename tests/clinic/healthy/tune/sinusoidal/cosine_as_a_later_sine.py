"""One sine for all: odd columns are a quarter of a turn ahead."""

import math

import torch
from torch import Tensor


def position_signal(
    seq_len: int,
    channels: int,
    max_timescale: float = 1.0e4,
    device: torch.device | str = "cpu",
) -> Tensor:
    opts = {"dtype": torch.float64, "device": device}
    channel = torch.arange(channels, **opts)
    phase = torch.remainder(channel, 2) * (math.pi / 2)
    wavelength = max_timescale ** ((channel - channel % 2) / channels)
    signal = torch.arange(seq_len, **opts).view(-1, 1) / wavelength
    return signal.add_(phase).sin_().to(torch.float32)


PATIENT = position_signal
FACTS = {"layout": "pairs", "dtypes": ("float32",)}
INPUTS = {"seq_len": "int n", "channels": "int d"}
SIZES = {"n": (1, 300), "d": (2, 24)}
