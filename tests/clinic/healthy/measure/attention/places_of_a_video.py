"""Non-local means: places of a picture or a film, not scaled at all."""

import torch
from torch import nn


class NonLocal(nn.Module):
    """theta, phi and g are (batch, channels, places...)."""

    def __init__(self, normalise="softmax"):
        super().__init__()
        self.normalise = normalise

    def affinity(self, theta, phi):
        f = torch.matmul(theta.flatten(2).permute(0, 2, 1), phi.flatten(2))
        if self.normalise == "softmax":
            return torch.softmax(f, dim=-1)
        return f / f.size(-1)

    def forward(self, theta, phi, g):
        places = theta.shape[2:]
        f = self.affinity(theta, phi)
        y = torch.matmul(f, g.flatten(2).permute(0, 2, 1))
        y = y.permute(0, 2, 1)  # channels are second again
        return y.reshape(g.size(0), g.size(1), *places)


PATIENT = NonLocal()
FACTS = {"layout": "BDN", "scale": 1.0}
INPUTS = {"theta": "b d n", "phi": "b d m", "g": "b e m"}
