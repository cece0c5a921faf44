"""Of a large vision model: one norm, two branches, a dict and a registry."""

from functools import partial

import torch
import torch.nn.functional as F
from torch import nn

BRANCHES = {}
layer_norm = partial(nn.LayerNorm, eps=1e-6)


def register(name):
    """Note a class of a branch under its name."""

    def noted(cls):
        BRANCHES[name] = cls
        return cls

    return noted


@register("attn")
class TokenMixer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, y, valid=None):
        q, k, v = (
            t.unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for t in self.qkv(y).chunk(3, dim=-1)
        )
        see = None if valid is None else valid[:, None, None, :]
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=see)
        return self.out(y.transpose(1, 2).flatten(2))


@register("mlp")
class ChannelMixer(nn.Sequential):
    def __init__(self, width, heads):
        del heads
        super().__init__(
            nn.Linear(width, 4 * width),
            nn.GELU(),
            nn.Linear(4 * width, width),
        )


class ParallelBlock(nn.Module):
    def __init__(self, width, heads, norm=layer_norm):
        super().__init__()
        self.norm = norm(width)
        self.branches = nn.ModuleDict(
            {name: make(width, heads) for name, make in BRANCHES.items()}
        )

    def forward(self, patches, valid=None):
        y = self.norm(patches)
        both = (
            self.branches["attn"](y, valid),
            self.branches["mlp"](y),
        )
        return patches + torch.stack(both).sum(0)


PATIENT = ParallelBlock(12, 4)
FACTS = {
    "layout": "BND",
    "order": "parallel",
    "attention": "branches.attn",
    "norms": ("norm",),
    "feed_forward": "branches.mlp",
    "padding": "keep",
    "names": {"x": "patches", "padding": "valid"},
    "dtypes": ("float64", "float32", "bfloat16"),
}
INPUTS = {"patches": "b n 12", "valid?": "real b n"}
