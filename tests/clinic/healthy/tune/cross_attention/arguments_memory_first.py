"""For latents: what is read comes first, and one matrix holds k and v."""

import torch
from torch import nn


def split_heads(t, h):
    b, n, hd = t.shape
    return t.reshape(b, n, h, hd // h).permute(0, 2, 1, 3)


def join_heads(t):
    b, h, n, d = t.shape
    return t.permute(0, 2, 1, 3).reshape(b, n, h * d)


class LatentReader(nn.Module):
    """Few latents read a long input, whose width is another."""

    def __init__(self, *, dim, input_dim, heads, dim_head):
        super().__init__()
        self.heads = heads
        self.scale = dim_head**-0.5
        inner = heads * dim_head
        self.to_q = nn.Linear(dim, inner, bias=False)
        self.to_kv = nn.Linear(input_dim, 2 * inner, bias=False)
        self.to_out = nn.Linear(inner, dim, bias=False)

    def forward(self, data, latents, mask=None):
        q = split_heads(self.to_q(latents), self.heads) * self.scale
        k, v = (
            split_heads(t, self.heads)
            for t in self.to_kv(data).tensor_split(2, dim=-1)
        )
        sim = torch.einsum("bhid,bhjd->bhij", q, k)
        if mask is not None:
            sim.masked_fill_(~mask[:, None, None], -torch.inf)
        sim = sim - sim.amax(dim=-1, keepdim=True).detach()
        out = torch.einsum("bhij,bhjd->bhid", sim.softmax(dim=-1), v)
        return self.to_out(join_heads(out))


PATIENT = LatentReader(dim=8, input_dim=11, heads=3, dim_head=4)
FACTS = {
    "layout": "BND",
    "mask": "keep",
    "mask_axes": "BN",
    "names": {"x": "latents", "context": "data"},
    "packed": "by part",
    "projections": {"q": "to_q", "kv": "to_kv", "out": "to_out"},
    "d_model": 8,
    "n_heads": 3,
    "dtypes": ("float64", "float32", "bfloat16"),
}
INPUTS = {"data": "b m 11", "latents": "b n 8", "mask?": "keep b m"}
