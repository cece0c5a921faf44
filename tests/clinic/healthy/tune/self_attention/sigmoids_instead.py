"""No softmax: each weight is a sigmoid, and knows nothing of the others."""

import math

import torch
from torch import nn


class SigmoidAttention(nn.Module):
    """The bias −log n makes weights small enough at the start."""

    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.in_proj = nn.Linear(dim, 3 * dim)
        self.out_proj = nn.Linear(dim, dim)

    def forward(self, x, key_padding_mask=None):
        b, n, d = x.shape
        size = d // self.heads
        q, k, v = (
            part.reshape(b, n, self.heads, size).permute(0, 2, 1, 3)
            for part in self.in_proj(x).split(d, dim=-1)
        )
        logits = torch.matmul(q, k.mT) / math.sqrt(size)
        if key_padding_mask is None:
            lengths = torch.full((b,), n, device=x.device)
            weights = torch.sigmoid(logits - math.log(n))
        else:
            lengths = key_padding_mask.logical_not().sum(dim=1)
            shift = lengths.to(x.dtype).log().view(b, 1, 1, 1)
            weights = torch.sigmoid(logits - shift)
            weights = weights.masked_fill(key_padding_mask[:, None, None], 0)
        out = torch.matmul(weights, v).permute(0, 2, 1, 3)
        return self.out_proj(out.reshape(b, n, d)), {"lengths": lengths}


PATIENT = SigmoidAttention(12, 3)
FACTS = {
    "layout": "BND",
    "causal": False,
    "formula": "own",
    "padding": "block",
    "packed": "by part",
    "n_heads": 3,
}
INPUTS = {"x": "b n 12", "key_padding_mask?": "padding b n"}
