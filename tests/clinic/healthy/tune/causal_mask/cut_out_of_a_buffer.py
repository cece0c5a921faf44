"""GPT-2's way: a large triangle in a buffer, of which a piece is cut."""

import torch
from torch import nn


class CausalBias(nn.Module):
    def __init__(self, block_size=64):
        super().__init__()
        bias = torch.tril(torch.ones(block_size, block_size))
        self.register_buffer("bias", bias, persistent=False)

    def forward(self, n_new, n_all):
        return self.bias[n_all - n_new : n_all, :n_all]


PATIENT = CausalBias()
FACTS = {
    "mask": "ones",
    "alignment": "last",
    "arguments": 2,
    "longest": 64,
}
INPUTS = {"n_new": "int n", "n_all": "int n+3"}
OTHER_INPUTS = [{"n_new": "int n", "n_all": "int n"}]
