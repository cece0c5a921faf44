"""Tokens first: a buffer with an axis of one for the texts, then dropout."""

import math

import torch
from torch import nn


def make_table(max_len, d_model):
    table = []
    for pos in range(max_len):
        row = []
        for j in range(d_model):
            angle = pos * math.exp(-(j - j % 2) / d_model * math.log(10000))
            row.append(math.cos(angle) if j % 2 else math.sin(angle))
        table.append(row)
    return torch.tensor(table)


class AddPositions(nn.Module):
    """Input and output are (length, batch, d_model)."""

    def __init__(self, d_model=6, p_drop=0.2, max_len=20):
        super().__init__()
        self.drop = nn.Dropout(p_drop)
        table = make_table(max_len, d_model).unsqueeze(1)
        self.register_buffer("table", table, persistent=False)

    def forward(self, seq):
        length, _batch, _ = seq.shape
        return self.drop(seq + self.table.narrow(0, 0, length).type_as(seq))


PATIENT = AddPositions()
FACTS = {"table": PATIENT.table[:, 0], "layout": "NBD", "dropout": 0.2}
INPUTS = {"seq": "n b 6"}
SIZES = {"n": (1, 20)}
