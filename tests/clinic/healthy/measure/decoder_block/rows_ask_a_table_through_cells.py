"""A Kaggle notebook's: new rows ask known rows, and a GRU cell decides."""

import torch
from torch import nn
from torch.nn import functional as F


class CFG:
    dim, heads, hidden, drop = 12, 2, 16, 0.2


class RowAttention(nn.Module):
    """For one table at a time; `forward` maps it over all."""

    def __init__(self):
        super().__init__()
        self.q = nn.Linear(CFG.dim, CFG.dim)
        self.k = nn.Linear(CFG.dim, CFG.dim, bias=False)
        self.v = nn.Linear(CFG.dim, CFG.dim)
        self.o = nn.Linear(CFG.dim, CFG.dim)

    def table(self, rows, known, use):
        def cut(t):
            return t.view(len(t), CFG.heads, -1).transpose(0, 1)

        q, k, v = cut(self.q(rows)), cut(self.k(known)), cut(self.v(known))
        logit = q @ k.transpose(1, 2) / q.size(-1) ** 0.5
        logit = logit.masked_fill(use.logical_not(), -1e9)
        p = logit.softmax(-1).mul(use)
        return self.o((p @ v).transpose(0, 1).flatten(1))

    def forward(self, rows, known, use=None):
        if use is None:
            use = torch.ones(known.shape[:2], dtype=torch.bool)
            use = use.to(known.device)
        return torch.vmap(self.table)(rows, known, use)


class SwiGLU(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(CFG.dim, CFG.hidden)
        self.value = nn.Linear(CFG.dim, CFG.hidden)
        self.out = nn.Linear(CFG.hidden, CFG.dim)

    def forward(self, rows):
        return self.out(F.silu(self.gate(rows)) * self.value(rows))


class Cell(nn.GRUCell):
    """What is told is the input of the cell, the row is its state."""

    def forward(self, row, told):
        flat = super().forward(told.flatten(0, 1), row.flatten(0, 1))
        return flat.view_as(row)


class TableBlock(nn.Module):
    def __init__(self):
        super().__init__()
        self.steps = nn.ModuleList([RowAttention(), RowAttention(), SwiGLU()])
        self.norms = nn.ModuleList(nn.LayerNorm(CFG.dim) for _ in range(3))
        self.cells = nn.ModuleList(Cell(CFG.dim, CFG.dim) for _ in range(3))
        self.drop = nn.Dropout(CFG.drop)

    def forward(self, rows, known, rows_use=None, known_use=None):
        among, across, mlp = self.steps
        y = self.norms[0](rows)
        rows = self.cells[0](rows, self.drop(among(y, y, rows_use)))
        y = self.norms[1](rows)
        rows = self.cells[1](rows, self.drop(across(y, known, known_use)))
        y = self.norms[2](rows)
        return self.cells[2](rows, self.drop(mlp(y))), None


PATIENT = TableBlock()
FACTS = {
    "layout": "BND",
    "order": "pre",
    "formula": "own",
    "path": "free",
    "causal": False,
    "self_attention": "steps.0",
    "cross_attention": "steps.1",
    "feed_forward": "steps.2",
    "norms": ("norms.0", "norms.1", "norms.2"),
    "padding": "keep",
    "dropout": 0.2,
    "dtypes": ("float64", "float32"),
}
INPUTS = {
    "rows": "b n 12",
    "known": "b m 12",
    "rows_use?": "real b n",
    "known_use?": "real b m",
}
