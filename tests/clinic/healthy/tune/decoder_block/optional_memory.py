"""A block that looks at sound only if it was made to; buffers for masks."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class MultiHeadAttention(nn.Module):
    def __init__(self, n_state: int, n_head: int):
        super().__init__()
        self.n_head = n_head
        self.query = nn.Linear(n_state, n_state)
        self.key = nn.Linear(n_state, n_state, bias=False)
        self.value = nn.Linear(n_state, n_state)
        self.out = nn.Linear(n_state, n_state)

    def forward(self, x: Tensor, xa: Tensor | None, mask: Tensor | None):
        source = x if xa is None else xa
        q, k, v = self.query(x), self.key(source), self.value(source)
        scale = (q.shape[-1] // self.n_head) ** -0.25
        q = q.view(*q.shape[:2], self.n_head, -1).permute(0, 2, 1, 3) * scale
        k = k.view(*k.shape[:2], self.n_head, -1).permute(0, 2, 3, 1) * scale
        v = v.view(*v.shape[:2], self.n_head, -1).permute(0, 2, 1, 3)
        qk = q @ k
        if mask is not None:
            n_ctx = x.shape[1]
            qk = qk + mask[:n_ctx, :n_ctx]
        w = F.softmax(qk, dim=-1)
        return self.out((w @ v).permute(0, 2, 1, 3).flatten(start_dim=2))


class ResidualAttentionBlock(nn.Module):
    def __init__(self, n_state, n_head, n_ctx, cross_attention=False):
        super().__init__()
        self.attn = MultiHeadAttention(n_state, n_head)
        self.attn_ln = nn.LayerNorm(n_state)
        self.cross_attn = None
        if cross_attention:
            self.cross_attn = MultiHeadAttention(n_state, n_head)
            self.cross_attn_ln = nn.LayerNorm(n_state)
        n_mlp = n_state * 2
        self.mlp = nn.Sequential(
            nn.Linear(n_state, n_mlp), nn.GELU(), nn.Linear(n_mlp, n_state)
        )
        self.mlp_ln = nn.LayerNorm(n_state)
        mask = torch.empty(n_ctx, n_ctx).fill_(-torch.inf).triu_(1)
        self.register_buffer("mask", mask, persistent=False)

    def forward(self, x: Tensor, xa: Tensor | None = None) -> Tensor:
        x = x + self.attn(self.attn_ln(x), None, self.mask)
        if self.cross_attn is not None:
            x = x + self.cross_attn(self.cross_attn_ln(x), xa, None)
        return x + self.mlp(self.mlp_ln(x))


PATIENT = ResidualAttentionBlock(12, 3, n_ctx=16, cross_attention=True)
FACTS = {
    "order": "pre",
    "layout": "BND",
    "self_attention": "attn",
    "cross_attention": "cross_attn",
    "feed_forward": "mlp",
    "norms": ["attn_ln", "cross_attn_ln", "mlp_ln"],
    "n_heads": 3,
    "longest": 16,
}
INPUTS = {"x": "b n 12", "xa": "b m 12"}
SIZES = {"n": (1, 16)}
