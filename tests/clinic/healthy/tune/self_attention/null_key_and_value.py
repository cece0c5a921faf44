"""One learnt key and value stands before the words; one head of keys."""

import torch
import torch.nn.functional as F
from torch import einsum, nn


def exists(val):
    return val is not None


class Attention(nn.Module):
    def __init__(self, dim, *, dim_head=64, heads=8, causal=False):
        super().__init__()
        self.scale = dim_head**-0.5
        self.heads = heads
        self.causal = causal
        self.norm = nn.LayerNorm(dim)
        self.null_kv = nn.Parameter(torch.randn(2, dim_head))
        self.to_q = nn.Linear(dim, dim_head * heads, bias=False)
        self.to_kv = nn.Linear(dim, dim_head * 2, bias=False)
        self.to_out = nn.Sequential(
            nn.Linear(dim_head * heads, dim, bias=False), nn.LayerNorm(dim)
        )

    def forward(self, x, mask=None):
        b, n, device = *x.shape[:2], x.device
        x = self.norm(x)
        q, k, v = self.to_q(x), *self.to_kv(x).chunk(2, dim=-1)
        q = q.view(b, n, self.heads, -1).transpose(1, 2) * self.scale

        # classifier-free guidance needs something to look at
        nk, nv = (t.expand(b, 1, -1) for t in self.null_kv.unbind(dim=-2))
        k = torch.cat((nk, k), dim=-2)
        v = torch.cat((nv, v), dim=-2)

        sim = einsum("b h i d, b j d -> b h i j", q, k)
        max_neg_value = -torch.finfo(sim.dtype).max
        if exists(mask):
            mask = F.pad(mask, (1, 0), value=True)
            sim = sim.masked_fill(~mask[:, None, None, :], max_neg_value)
        if self.causal:
            i, j = sim.shape[-2:]
            ones = torch.ones((i, j), dtype=torch.bool, device=device)
            sim = sim.masked_fill(ones.triu(j - i + 1), max_neg_value)

        attn = sim.softmax(dim=-1)
        out = einsum("b h i j, b j d -> b h i d", attn, v)
        return self.to_out(out.transpose(1, 2).reshape(b, n, -1))


PATIENT = Attention(10, dim_head=4, heads=3, causal=True)
FACTS = {
    "layout": "BND",
    "causal": True,
    "formula": "own",
    "padding": "keep",
    "n_heads": 3,
}
INPUTS = {"x": "b n 10", "mask?": "real b n"}
