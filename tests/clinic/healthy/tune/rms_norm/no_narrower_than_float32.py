"""T5's way: no mean, no shift, and nothing computed in half of a float."""

import torch
from torch import Tensor, nn


class T5LayerNorm(nn.Module):
    weight: nn.Parameter

    def __init__(self, d_model: int, eps: float = 1e-6) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d_model))
        self.variance_epsilon = eps

    def forward(self, x: Tensor) -> Tensor:
        compute_dtype = torch.promote_types(x.dtype, torch.float32)
        h = x.to(compute_dtype)
        variance = (h * h).mean(-1, keepdim=True)
        h = h * torch.rsqrt(variance + self.variance_epsilon)
        return self.weight * h.to(x.dtype)


PATIENT = T5LayerNorm(6)
FACTS = {"eps": 1e-6}
INPUTS = {"x": "b n 6"}
