"""A speech toolkit's way: sines and cosines, made anew for a longer text."""

import math

import torch
from torch import nn


def sinusoids(length, d_model):
    pe = torch.zeros(length, d_model, dtype=torch.float64)
    position = torch.arange(length, dtype=torch.float64).unsqueeze(1)
    exponent = torch.arange(0, d_model, 2, dtype=torch.float64) / d_model
    div_term = torch.exp(exponent * -math.log(10000.0))
    pe[:, 0::2] = torch.sin(position * div_term)
    pe[:, 1::2] = torch.cos(position * div_term)
    return pe


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, dropout_rate, start_len=4):
        super().__init__()
        self.d_model = d_model
        self.dropout = nn.Dropout(p=dropout_rate)
        self.pe = None
        self.extend_pe(torch.zeros(1, start_len))

    def extend_pe(self, x):
        """Whatever is needed for the length, the type and the device of x."""
        if self.pe is not None and self.pe.size(1) >= x.size(1):
            if self.pe.dtype != x.dtype or self.pe.device != x.device:
                # not from the old one, which may have fewer digits
                self.pe = sinusoids(self.pe.size(1), self.d_model)[None].to(x)
            return
        self.pe = sinusoids(x.size(1), self.d_model).unsqueeze(0).to(x)

    def forward(self, x):
        self.extend_pe(x)
        return self.dropout(x + self.pe[:, : x.size(1)])


PATIENT = PositionalEncoding(6, 0.1)
FACTS = {"table": sinusoids(24, 6), "layout": "BND", "dropout": 0.1}
INPUTS = {"x": "b n 6"}
SIZES = {"n": (1, 24)}
