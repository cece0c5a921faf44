"""A recommender's: a mask for clicks, one for the catalogue, four matrices."""

import torch
from torch import nn
from torch.nn import functional as F


class RMS(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(dim))

    def forward(self, x):
        return F.rms_norm(x, x.shape[-1:], self.gamma, eps=1e-6)


class Attend(nn.Module):
    def __init__(self, dim, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.packed = nn.Parameter(torch.empty(4 * dim, dim))  # q, k, v, out
        nn.init.normal_(self.packed, std=dim**-0.5)

    def heads(self, x, matrix):
        batch, length, _ = x.shape
        x = F.linear(x, matrix).view(batch, length, self.n_heads, -1)
        return x.transpose(1, 2)

    def forward(self, x, y, keep):
        w_q, w_k, w_v, w_out = self.packed.chunk(4)
        q, k, v = self.heads(x, w_q), self.heads(y, w_k), self.heads(y, w_v)
        o = F.scaled_dot_product_attention(q, k, v, attn_mask=keep)
        return F.linear(o.transpose(1, 2).reshape(x.shape), w_out)


class SwiGLU(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.w1 = nn.Linear(dim, hidden, bias=False)
        self.w2 = nn.Linear(hidden, dim, bias=False)
        self.w3 = nn.Linear(dim, hidden, bias=False)

    def forward(self, x):
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


class ClickBlock(nn.Module):
    def __init__(self, dim, n_heads, hidden, longest=50):
        super().__init__()
        self.clicks, self.catalogue = (
            Attend(dim, n_heads),
            Attend(dim, n_heads),
        )
        self.mlp = SwiGLU(dim, hidden)
        self.pre = nn.ModuleList(RMS(dim) for _ in range(3))
        self.post = nn.ModuleList(RMS(dim) for _ in range(3))
        place = torch.arange(longest)
        self.register_buffer("earlier", place <= place[:, None])

    def forward(self, clicks, catalogue, real_clicks=None, on_sale=None):
        n = clicks.size(1)
        seen = self.earlier[:n, :n]
        if real_clicks is not None:
            seen = seen & real_clicks[:, None, None]
        if on_sale is not None:
            on_sale = on_sale[:, None, None]
        x = self.pre[0](clicks)
        clicks = clicks + self.post[0](self.clicks(x, x, seen))
        x = self.catalogue(self.pre[1](clicks), catalogue, on_sale)
        clicks = clicks + self.post[1](x)
        return clicks + self.post[2](self.mlp(self.pre[2](clicks)))


PATIENT = ClickBlock(dim=8, n_heads=4, hidden=12)
FACTS = {
    "layout": "BND",
    "order": "sandwich",
    "self_attention": "clicks",
    "cross_attention": "catalogue",
    "norms": ["pre.0", "post.0", "pre.1", "post.1", "pre.2", "post.2"],
    "feed_forward": "mlp",
    "padding": "keep",
    "longest": 50,
    "dtypes": ("float64", "float32", "bfloat16"),
}
INPUTS = {
    "clicks": "b n 8",
    "catalogue": "b m 8",
    "real_clicks?": "real b n",
    "on_sale?": "real b m",
}
