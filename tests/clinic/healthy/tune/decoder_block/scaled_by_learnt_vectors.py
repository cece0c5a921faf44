"""Each sublayer's output is multiplied by a vector, nearly zero at first."""

import torch
import torch.nn.functional as F
from torch import nn


class LayerScale(nn.Module):
    def __init__(self, dim, init=1e-4):
        super().__init__()
        self.gamma = nn.Parameter(init * torch.ones(dim))

    def forward(self, x):
        return self.gamma * x


class Attn(nn.Module):
    """Of x to itself and its past if there is no context, else to that."""

    def __init__(self, dim, heads, ctx_dim=None):
        super().__init__()
        self.h = heads
        self.causal = ctx_dim is None
        self.q = nn.Linear(dim, dim, bias=False)
        self.kv = nn.Linear(ctx_dim or dim, 2 * dim, bias=False)
        self.o = nn.Linear(dim, dim, bias=False)

    def forward(self, x, ctx=None, bias=None):
        ctx = x if ctx is None else ctx
        q = self.q(x).unflatten(2, (self.h, -1)).transpose(1, 2)
        k, v = self.kv(ctx).unflatten(2, (2, self.h, -1)).unbind(2)
        y = F.scaled_dot_product_attention(
            q,
            k.transpose(1, 2),
            v.transpose(1, 2),
            attn_mask=bias,
            is_causal=self.causal,
        )
        return self.o(y.transpose(1, 2).flatten(2))


class GEGLU(nn.Module):
    def __init__(self, dim, inner):
        super().__init__()
        self.w_in = nn.Linear(dim, 2 * inner)
        self.w_out = nn.Linear(inner, dim)

    def forward(self, x):
        x, gate = self.w_in(x).chunk(2, dim=-1)
        return self.w_out(F.gelu(gate) * x)


class DepthwiseStableBlock(nn.Module):
    def __init__(self, dim, heads, inner, ctx_dim):
        super().__init__()
        self.norms = nn.ModuleDict(
            {part: nn.RMSNorm(dim, eps=1e-6) for part in ("sa", "ca", "ff")}
        )
        self.scales = nn.ModuleDict(
            {part: LayerScale(dim) for part in ("sa", "ca", "ff")}
        )
        self.sa = Attn(dim, heads)
        self.ca = Attn(dim, heads, ctx_dim)
        self.ff = GEGLU(dim, inner)

    def forward(self, x, ctx, ctx_bias=None):
        more = {"sa": (), "ca": (ctx, ctx_bias), "ff": ()}
        for part, args in more.items():
            h = getattr(self, part)(self.norms[part](x), *args)
            x = x + self.scales[part](h)
        return x


PATIENT = DepthwiseStableBlock(12, 2, 15, ctx_dim=12)
FACTS = {
    "order": "pre",
    "formula": "own",
    "causal": True,
    "layout": "BND",
    "mask": "add",
    "self_attention": "sa",
    "cross_attention": "ca",
    "feed_forward": "ff",
    "norms": ["norms.sa", "norms.ca", "norms.ff"],
    "residual_scale": (
        "scales.sa.gamma",
        "scales.ca.gamma",
        "scales.ff.gamma",
    ),
}
INPUTS = {"x": "b n 12", "ctx": "b m 12", "ctx_bias?": "add n m"}
