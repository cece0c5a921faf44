"""Speech: the sinusoids are weighed by a number that is learnt."""

import math

import torch
from torch import nn


class ScaledPositions(nn.Module):
    def __init__(self, d_model, dropout_rate, longest=40, start=0.5):
        super().__init__()
        self.alpha = nn.Parameter(torch.tensor(start))
        self.dropout = nn.Dropout(p=dropout_rate)
        table = torch.empty(1, longest, d_model)
        place = torch.arange(longest).view(-1, 1)
        rate = torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model)
        angle = place * rate.exp()
        table[0, :, 0::2], table[0, :, 1::2] = angle.sin(), angle.cos()
        self.register_buffer("pe", table, persistent=False)

    def forward(self, xs):
        n = xs.size(1)
        if n > self.pe.size(1):
            raise ValueError(f"{n} frames, and only {self.pe.size(1)} places")
        return self.dropout(xs + self.alpha * self.pe[:, :n].to(xs.dtype))


PATIENT = ScaledPositions(6, 0.1)
FACTS = {
    "table": (PATIENT.alpha * PATIENT.pe[0]).detach(),
    "layout": "BND",
    "dropout": 0.1,
}
INPUTS = {"xs": "b n 6"}
SIZES = {"n": (1, 40)}
