"""A square buffer of ones below the diagonal; a step's rows are cut out."""

import torch
from torch import nn


class Bias(nn.Module):
    def __init__(self, n_positions):
        super().__init__()
        square = torch.ones(n_positions, n_positions, dtype=torch.uint8)
        self.register_buffer("bias", torch.tril(square)[None, None])

    def forward(self, q_length, k_length):
        start = k_length - q_length
        return self.bias[:, :, start:k_length, :k_length].bool()


PATIENT = Bias(64)
FACTS = {"mask": "keep", "alignment": "last", "arguments": 2, "longest": 64}
INPUTS = {"q_length": "int n", "k_length": "int n+3"}
OTHER_INPUTS = [{"q_length": "int n", "k_length": "int n"}]
