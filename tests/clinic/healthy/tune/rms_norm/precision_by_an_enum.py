"""For recognising speech: an Enum says how, and a flag adds the level."""

from enum import Enum

import torch
from torch import nn


class Inside(Enum):
    """In which numbers squares are taken."""

    SAME = "same"
    WIDER = "wider"


class FrameRMSNorm(nn.Module):
    def __init__(
        self,
        num_channels,
        eps=1e-6,
        inside=Inside.WIDER,
        gain_init=1.0,
        learnable=True,
        cast_before_gain=False,
        return_level=False,
    ):
        super().__init__()
        self.inside, self.cast_first = inside, cast_before_gain
        self.return_level = return_level
        self.register_buffer("eps", torch.tensor(eps, dtype=torch.float64))
        gain = torch.full((num_channels,), gain_init)
        self.gain = nn.Parameter(gain, requires_grad=learnable)

    def forward(self, frames):
        x = frames
        if self.inside is Inside.WIDER:
            x = x.to(torch.promote_types(x.dtype, torch.float32))
        level = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
        level = level.square().div(x.shape[-1])
        level = level.add(self.eps.item()).sqrt()
        x = x / level
        if self.cast_first:
            x = x.to(frames.dtype)
        x = (x * self.gain.to(x.dtype)).to(frames.dtype)
        return (x, level.squeeze(-1)) if self.return_level else x


PATIENT = FrameRMSNorm(5)
FACTS = {
    "eps": 1e-6,
    "precision": "exact",
    "gain": "itself",
    "dtypes": ("float64", "float32", "bfloat16"),
}
INPUTS = {"frames": "b n 5"}
OTHER_INPUTS = [{"frames": "n b h 5"}]
