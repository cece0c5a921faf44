"""Of a paper on sales by day: projections are convolutions of width one."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class LocalTemporalAttention(nn.Module):
    """Each day looks at the days around it, `reach` to each side."""

    def __init__(self, channels: int, groups: int = 2, reach: int = 2):
        super().__init__()
        self.channels, self.groups, self.reach = channels, groups, reach
        self.to_qkv = nn.Conv1d(channels, 3 * channels, 1)
        self.to_out = nn.Conv1d(channels, channels, 1)

    def _near(self, T, device):
        day = torch.arange(T, device=device)
        gap = day.unsqueeze(0) - day.unsqueeze(1)
        return gap.abs().le(self.reach)

    def forward(self, series: torch.Tensor) -> torch.Tensor:
        B, T, C = series.size()
        z = self.to_qkv(series.transpose(1, 2))  # B, 3C, T
        q, k, v = torch.split(z, C, dim=1)
        q, k, v = (
            p.reshape(B, self.groups, C // self.groups, T) for p in (q, k, v)
        )
        logit = torch.einsum("bgci,bgcj->bgij", q, k)
        logit = logit / (C // self.groups) ** 0.5
        near = self._near(T, series.device)
        share = F.softmax(logit.masked_fill(~near, float("-inf")), dim=-1)
        mixed = torch.einsum("bgij,bgcj->bgci", share, v)
        return self.to_out(mixed.reshape(B, C, T)).transpose(1, 2)


PATIENT = LocalTemporalAttention(10, groups=2, reach=2)
FACTS = {
    "layout": "BND",
    "causal": False,
    "window": 3,
    "packed": "by part",
    "names": {"x": "series"},
    "projections": {"qkv": "to_qkv", "out": "to_out"},
    "d_model": 10,
    "n_heads": 2,
    "dtypes": ("float64", "float32", "bfloat16"),
}
INPUTS = {"series": "b n 10"}
SIZES = {"n": (1, 9)}
