"""For a game: units in turn order, rotated; dead ones are not looked at."""

from typing import NamedTuple

import torch
from torch import Tensor, nn


class Seen(NamedTuple):
    memory: Tensor
    focus: Tensor


class UnitAttention(nn.Module):
    def __init__(self, width, heads=2, base=100.0, gain=1.0):
        super().__init__()
        self.heads = heads
        self.size = width // heads
        for role in ("ask", "answer", "report", "order"):
            table = torch.empty(width, width)
            nn.init.xavier_normal_(table, gain=gain)
            self.register_parameter(f"w_{role}", nn.Parameter(table))
        steps = torch.arange(0, self.size, 2) / self.size
        self.register_buffer("pace", base**-steps, persistent=False)

    def by_head(self, units, role):
        b, n, _ = units.shape
        table = getattr(self, f"w_{role}")
        return (units @ table).reshape(b, n, self.heads, self.size)

    def turned(self, x):
        turn = torch.arange(x.shape[1], device=x.device)
        angle = turn[:, None, None] * self.pace
        cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
        near, far = x.chunk(2, dim=-1)
        both = (near * cos - far * sin, far * cos + near * sin)
        return torch.cat(both, dim=-1)

    def forward(self, units, **state):
        q = self.turned(self.by_head(units, "ask"))
        k = self.turned(self.by_head(units, "answer"))
        v = self.by_head(units, "report")
        logits = torch.einsum("bihd,bjhd->bhij", q, k) * self.size**-0.5
        alive = state.get("alive")
        if alive is not None:
            logits = torch.where(alive[:, None, None], logits, -torch.inf)
        focus = logits.softmax(dim=-1)
        heard = torch.einsum("bhij,bjhd->bihd", focus, v)
        return Seen(heard.flatten(2) @ self.w_order, focus)


PATIENT = UnitAttention(width=8)
FACTS = {
    "layout": "BND",
    "causal": False,
    "mask": "keep",
    "mask_axes": "BN",
    "empty_row": "nan",
    "matrices": "in, out",
    "formula": "own",
    "d_model": 8,
    "n_heads": 2,
    "names": {"x": "units", "mask": "alive"},
    "projections": {
        "q": "w_ask",
        "k": "w_answer",
        "v": "w_report",
        "out": "w_order",
    },
    "dtypes": ("float32", "bfloat16"),  # angles are of float32
}
INPUTS = {"units": "b n 8", "alive?": "keep b n"}
