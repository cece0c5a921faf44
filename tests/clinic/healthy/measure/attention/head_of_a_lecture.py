"""One head of a small language model; a triangle lies in a buffer."""

import torch
import torch.nn as nn
from torch.nn import functional as F

# settings of the notebook
block_size = 256
dropout = 0.2


class CausalHead(nn.Module):
    """q, k, v are there already, (B, T, head_size) each"""

    def __init__(self):
        super().__init__()
        tril = torch.tril(torch.ones(block_size, block_size))
        self.register_buffer("tril", tril)  # no parameter, but it moves along
        self.dropout = nn.Dropout(dropout)

    def forward(self, q, k, v):
        _B, T, C = k.shape
        wei = q @ k.transpose(-2, -1) * C**-0.5  # (B, T, T)
        # nobody looks into the future
        wei = wei.masked_fill(self.tril[:T, :T] == 0, float("-inf"))
        wei = F.softmax(wei, dim=-1)
        wei = self.dropout(wei)
        return wei @ v


PATIENT = CausalHead().eval()
FACTS = {
    "layout": "BND",
    "causal": True,
    "dropout": 0.2,
    "longest": 256,
}
INPUTS = {"q": "b n d", "k": "b n d", "v": "b n e"}
