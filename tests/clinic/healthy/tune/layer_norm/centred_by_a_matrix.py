"""A mathematician's: centring is a projection, so it is a matrix product."""

import torch
import torch.nn as nn


class ProjectionNorm(nn.Module):
    """x ↦ P x / sqrt(|P x|² / d + ε), scaled and moved, P = I - 1 1ᵀ / d."""

    def __init__(self, d, epsilon=1e-3):
        super().__init__()
        self.d = d
        self.epsilon = epsilon
        self.a = nn.Parameter(torch.ones(d))
        self.b = nn.Parameter(torch.zeros(d))

    def projector(self, like):
        one = torch.ones(self.d, 1, dtype=like.dtype, device=like.device)
        eye = torch.eye(self.d, dtype=like.dtype, device=like.device)
        return torch.addmm(eye, one, one.T, alpha=-1.0 / self.d)

    def forward(self, x):
        y = x @ self.projector(x)
        power = torch.einsum("...i,...i->...", y, y) / self.d
        root = torch.sqrt(power + self.epsilon)
        return torch.addcmul(self.b, self.a, y / root[..., None])


PATIENT = ProjectionNorm(7)
FACTS = {"eps": 1e-3, "dtypes": ("float64", "float32")}
INPUTS = {"x": "b n 7"}
OTHER_INPUTS = [{"x": "n 7"}, {"x": "b h n 7"}]
