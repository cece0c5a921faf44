"""GPT-2's way: a large triangle in a buffer, of which a piece is cut."""

import torch
from torch import nn


class CausalBias(nn.Module):
    def __init__(self, block_size=64):
        super().__init__()
        bias = torch.tril(torch.ones(block_size, block_size))
        self.register_buffer("bias", bias, persistent=False)

    def forward(self, nd, ns):
        return self.bias[ns - nd : ns, :ns]


PATIENT = CausalBias()
FACTS = {
    "mask": "ones",
    "alignment": "last",
    "arguments": 2,
    "longest": 64,
}
INPUTS = {"nd": "int n", "ns": "int n+3"}
OTHER_INPUTS = [{"nd": "int n", "ns": "int n"}]
