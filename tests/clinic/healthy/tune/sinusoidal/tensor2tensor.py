"""Frequencies from 1 to 1/10000 inclusive; sines, then cosines."""

import math

import torch


def timing_signal(length, channels):
    half = channels // 2
    step = math.log(10000.0) / max(half - 1, 1)
    inv = torch.exp(torch.arange(half, dtype=torch.float64) * -step)
    angle = torch.arange(length, dtype=torch.float64)[:, None] * inv
    return torch.cat([angle.sin(), angle.cos()], dim=1).float()


PATIENT = timing_signal
FACTS = {"layout": "halves", "ends": "at 1"}
INPUTS = {"length": "int n", "channels": "int 2*d"}
