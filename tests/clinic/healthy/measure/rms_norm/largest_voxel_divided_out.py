"""For scans with bright spots: no square overflows, and a residual slot."""

from enum import Enum, auto

import torch
from torch import nn


class Slot(Enum):
    """What comes back beside the output."""

    RESIDUAL = auto()
    NOTHING = auto()


class BrightRMSNorm(nn.Module):
    def __init__(
        self,
        channels,
        epsilon=1e-5,
        slot=Slot.RESIDUAL,
        scale_start=1.0,
        least=1.0,
        residual_weight=1.0,
        guard=True,
    ):
        super().__init__()
        self.epsilon, self.slot, self.guard = epsilon, slot, guard
        self.least, self.residual_weight = least, residual_weight
        self.scale = nn.Parameter(torch.full((channels,), scale_start))

    def brightest(self, x):
        """Divides out again, so no gradient flows through it."""
        if not self.guard:
            return x.new_ones(*x.shape[:-1], 1)
        top = x.detach().abs().amax(dim=-1, keepdim=True)
        return top.clamp(min=self.least)

    def forward(self, x, residual=None):
        """(voxels, scans, channels), and what to add to it first."""
        if residual is not None:
            x = residual = x + self.residual_weight * residual
        top = self.brightest(x)
        dim = x / top
        mean = (dim * dim).mean(dim=-1, keepdim=True)
        root = (mean + self.epsilon / top / top).sqrt()
        out = dim / root * self.scale
        return out, residual if self.slot is Slot.RESIDUAL else None


PATIENT = BrightRMSNorm(7)
FACTS = {
    "eps": 1e-5,
    "precision": "exact",
    "eps_as": "term",
    "dtypes": ("float64", "float32"),
}
INPUTS = {"x": "n b 7"}
