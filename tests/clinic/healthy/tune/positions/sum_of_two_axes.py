"""Two small tables, of rows and of columns, make a large one by sums."""

import torch
from torch import nn


class AxialPositions(nn.Module):
    def __init__(self, dim, axial_shape):
        super().__init__()
        n_rows, n_cols = axial_shape
        self.rows = nn.Parameter(torch.randn(n_rows, 1, dim))
        self.cols = nn.Parameter(torch.randn(1, n_cols, dim))

    @property
    def max_seq_len(self):
        return self.rows.shape[0] * self.cols.shape[1]

    def table(self):
        return (self.rows + self.cols).reshape(self.max_seq_len, -1)

    def forward(self, x):
        t = x.shape[1]
        assert t <= self.max_seq_len
        return x + self.table()[:t].to(x.dtype)


PATIENT = AxialPositions(6, (4, 5))
FACTS = {"table": PATIENT.table().detach(), "layout": "BND"}
INPUTS = {"x": "b n 6"}
SIZES = {"n": (1, 20)}
