"""Many heads ask, and one answers; True means hidden."""

import torch
from torch import nn


class MultiQueryAttention(nn.Module):
    def __init__(self, dim, *, context_dim, heads, dim_head):
        super().__init__()
        self.h = heads
        self.d = dim_head
        self.W_ask = nn.Linear(dim, heads * dim_head, bias=False)
        self.W_kv = nn.Linear(context_dim, 2 * dim_head, bias=False)
        self.W_back = nn.Linear(heads * dim_head, dim)

    def forward(self, context, x, *, hide=None, return_weights=False):
        q = self.W_ask(x).unflatten(2, (self.h, self.d))
        k, v = self.W_kv(context).split(self.d, dim=2)
        sim = torch.einsum("b i h d, b j d -> b h i j", q, k)
        sim = sim.div(self.d**0.5)
        if hide is not None:
            sim = sim.masked_fill(hide.unsqueeze(1), float("-inf"))
            nothing = hide.all(-1)[:, None, :, None]
            weights = sim.softmax(-1).masked_fill(nothing, 0)
        else:
            weights = sim.softmax(-1)
        y = torch.einsum("b h i j, b j d -> b i h d", weights, v)
        y = self.W_back(y.flatten(2))
        if return_weights:
            return y, weights
        return y


PATIENT = MultiQueryAttention(9, context_dim=7, heads=4, dim_head=5)
FACTS = {
    "layout": "BND",
    "mask": "block",
    "mask_axes": "BNN",
    "empty_row": "zeros",
    "n_heads": 4,
    "projections": {"q": "W_ask", "kv": "W_kv", "out": "W_back"},
}
INPUTS = {"x": "b n 9", "context": "b m 7", "hide?": "block b n m"}
