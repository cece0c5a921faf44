"""For a server: the table is kept, and made anew only when it is too small."""

import torch
from torch import nn


class PositionTable(nn.Module):
    """Called with the tokens and the width of a model."""

    def __init__(self, spare: int = 8, base: float = 10000.0) -> None:
        super().__init__()
        self.spare, self.base = spare, base
        empty = torch.empty(0, 0)
        self.register_buffer("table", empty, persistent=False)

    def build(self, rows: int, width: int) -> torch.Tensor:
        """In float64, so that far positions are right, too."""
        where = self.table.device
        feature = torch.arange(width, device=where)
        pair = torch.div(feature, 2, rounding_mode="floor").double()
        rate = torch.exp2(
            -(2 * pair / width)
            * torch.log2(torch.tensor(self.base, dtype=torch.float64))
        )
        angle = torch.arange(rows, device=where).double()[:, None] * rate
        wave = torch.where(feature % 2 == 0, angle.sin(), angle.cos())
        return wave.float()

    def forward(self, n: int, width: int) -> torch.Tensor:
        rows, wide = self.table.shape
        if wide != width or rows < n:
            self.table = self.build(n + self.spare, width)
        return self.table[:n].float().clone()


PATIENT = PositionTable()
FACTS = {"layout": "pairs", "dtypes": ("float32",)}
INPUTS = {"n": "int n", "width": "int d"}
