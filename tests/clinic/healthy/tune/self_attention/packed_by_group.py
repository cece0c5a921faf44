"""One map: of each group its queries, then its key, then its value."""

import torch.nn.functional as F
from torch import nn


class GroupedFusedAttention(nn.Module):
    def __init__(self, embed_dim, num_heads, num_kv_heads, bias=True):
        super().__init__()
        self.head_size = embed_dim // num_heads
        self.groups = num_kv_heads
        self.q_per_kv = num_heads // num_kv_heads
        rows = (num_heads + 2 * num_kv_heads) * self.head_size
        self.attn = nn.Linear(embed_dim, rows, bias=bias)
        self.proj = nn.Linear(num_heads * self.head_size, embed_dim, bias=bias)

    def forward(self, x, causal=False):
        B, T, _ = x.size()
        qkv = self.attn(x)
        # groups of (q_per_kv queries, a key, a value)
        total = self.q_per_kv + 2
        qkv = qkv.view(B, T, self.groups, total, self.head_size)
        qkv = qkv.permute(0, 2, 3, 1, 4)  # (B, groups, total, T, hs)
        q, k, v = qkv.split((self.q_per_kv, 1, 1), dim=2)
        if self.q_per_kv != 1:
            k = k.expand(B, self.groups, self.q_per_kv, T, self.head_size)
            v = v.expand(B, self.groups, self.q_per_kv, T, self.head_size)
        q = q.reshape(B, -1, T, self.head_size)
        k = k.reshape(B, -1, T, self.head_size)
        v = v.reshape(B, -1, T, self.head_size)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
        y = y.transpose(1, 2).reshape(B, T, -1)
        return self.proj(y)


PATIENT = GroupedFusedAttention(18, 6, 2)
FACTS = {
    "layout": "BND",
    "causal": False,
    "packed": "by group",
    "n_heads": 6,
}
INPUTS = {"x": "b n 18", "causal?": "true"}
