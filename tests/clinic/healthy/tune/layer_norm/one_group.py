"""A group norm of one group, over tokens laid out as a batch."""

import torch
from torch import Tensor, nn


class ChannelNorm(nn.GroupNorm):
    """(..., features); as convolutional models have it at hand anyway."""

    def __init__(self, features: int) -> None:
        super().__init__(num_groups=1, num_channels=features, eps=1e-6)

    def forward(self, input: Tensor) -> Tensor:
        rows = torch.flatten(input, end_dim=-2)
        return super().forward(rows).unflatten(0, input.shape[:-1])


PATIENT = ChannelNorm(8)
FACTS = {"eps": 1e-6, "dtypes": ("float64", "float32")}
INPUTS = {"input": "b n 8"}
