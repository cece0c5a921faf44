"""Rows of a fixed table, cut to the text; then dropout."""

import torch
from torch import nn


class PositionalEncoding(nn.Module):
    def __init__(self, d_model, dropout, max_len):
        super().__init__()
        self.dropout = nn.Dropout(p=dropout)
        position = torch.arange(max_len).unsqueeze(1)
        rate = 10000.0 ** (-torch.arange(0, d_model, 2) / d_model)
        pe = torch.zeros(1, max_len, d_model)
        pe[0, :, 0::2] = torch.sin(position * rate)
        pe[0, :, 1::2] = torch.cos(position * rate)
        self.register_buffer("pe", pe)

    def forward(self, x):
        x = x + self.pe[:, : x.size(1)]
        return self.dropout(x)


PATIENT = PositionalEncoding(6, 0.1, 16)
FACTS = {"table": PATIENT.pe[0], "layout": "BND", "dropout": 0.1}
INPUTS = {"x": "b n 6"}
SIZES = {"n": (1, 16)}
