"""A picture is made by steps: the step shifts, scales and gates the block."""

import torch
import torch.nn.functional as F
from torch import nn


class Attention(nn.Module):
    def __init__(self, hidden_size, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.qkv = nn.Linear(hidden_size, hidden_size * 3)
        self.proj = nn.Linear(hidden_size, hidden_size)

    def forward(self, x):
        size, length, width = x.shape
        qkv = self.qkv(x).view(size, length, 3, self.num_heads, -1)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        x = F.scaled_dot_product_attention(q, k, v)
        return self.proj(x.transpose(1, 2).reshape(size, length, width))


class ConditionedBlock(nn.Module):
    def __init__(self, hidden_size, num_heads, cond_size, mlp_size):
        super().__init__()
        self.norm1 = nn.LayerNorm(hidden_size, elementwise_affine=False)
        self.attn = Attention(hidden_size, num_heads)
        self.norm2 = nn.LayerNorm(hidden_size, elementwise_affine=False)
        self.mlp = nn.Sequential(
            nn.Linear(hidden_size, mlp_size),
            nn.GELU(approximate="tanh"),
            nn.Linear(mlp_size, hidden_size),
        )
        self.cond_size = cond_size
        self.modulation = nn.Sequential(
            nn.SiLU(), nn.Linear(cond_size, 6 * hidden_size)
        )
        # as the paper has it: at first a block does nothing
        nn.init.zeros_(self.modulation[1].weight)
        nn.init.zeros_(self.modulation[1].bias)

    def forward(self, x, c=None):
        if c is None:
            c = x.new_zeros(x.shape[0], self.cond_size)
        six = self.modulation(c).unsqueeze(1).chunk(6, dim=-1)
        shift1, scale1, gate1, shift2, scale2, gate2 = six
        h = torch.addcmul(shift1, self.norm1(x), 1 + scale1)
        x = x + gate1 * self.attn(h)
        h = torch.addcmul(shift2, self.norm2(x), 1 + scale2)
        return x + gate2 * self.mlp(h)


PATIENT = ConditionedBlock(12, 3, cond_size=5, mlp_size=18)
FACTS = {
    "order": "pre",
    "formula": "own",
    "layout": "BND",
    "causal": False,
    "attention": "attn",
    "feed_forward": "mlp",
    "norms": ["norm1", "norm2"],
}
INPUTS = {"x": "b n 12", "c?": "b 5"}
