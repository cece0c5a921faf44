"""Pictures from words: patches see all patches, then the prompt's words."""

import torch
import torch.nn.functional as F
from torch import nn


class GEGLU(nn.Linear):
    def __init__(self, dim_in, dim_out):
        super().__init__(dim_in, 2 * dim_out)

    def forward(self, x):
        value, gate = super().forward(x).tensor_split(2, dim=-1)
        return value * F.gelu(gate)


class Attention(nn.Module):
    """Of x itself, unless it was made for a context."""

    def __init__(self, dim, context_dim=None, *, heads, dim_head, dropout):
        super().__init__()
        inner_dim = heads * dim_head
        self.heads, self.scale = heads, dim_head**-0.5
        self.to_q = nn.Linear(dim, inner_dim, bias=False)
        self.to_k = nn.Linear(context_dim or dim, inner_dim, bias=False)
        self.to_v = nn.Linear(context_dim or dim, inner_dim, bias=False)
        self.to_out = nn.ModuleList(
            [nn.Linear(inner_dim, dim), nn.Dropout(dropout)]
        )

    def fold(self, t):
        """Heads become texts: b n (h d) -> (b h) n d."""
        t = torch.stack(t.chunk(self.heads, dim=-1), dim=1)
        return t.flatten(0, 1)

    def unfold(self, t):
        t = t.unflatten(0, (-1, self.heads))
        return torch.cat(t.unbind(dim=1), dim=-1)

    def forward(self, x, context=None, mask=None):
        if context is None:
            context = x
        q = self.fold(self.to_q(x))
        k = self.fold(self.to_k(context))
        v = self.fold(self.to_v(context))
        sim = torch.bmm(q, k.transpose(1, 2)) * self.scale
        if mask is not None:
            mask = mask.repeat_interleave(self.heads, dim=0).unsqueeze(1)
            sim = sim.masked_fill(~mask, torch.finfo(sim.dtype).min)
        x = self.unfold(torch.bmm(sim.softmax(dim=-1), v))
        for layer in self.to_out:
            x = layer(x)
        return x


class PromptedBlock(nn.Module):
    def __init__(self, dim, heads, dim_head, context_dim, dropout=0.1):
        super().__init__()
        shape = {"heads": heads, "dim_head": dim_head, "dropout": dropout}
        self.norm1 = nn.LayerNorm(dim)
        self.attn1 = Attention(dim, **shape)
        self.norm2 = nn.LayerNorm(dim)
        self.attn2 = Attention(dim, context_dim, **shape)
        self.norm3 = nn.LayerNorm(dim)
        self.ff = nn.Sequential(
            GEGLU(dim, 2 * dim), nn.Dropout(dropout), nn.Linear(2 * dim, dim)
        )

    def forward(self, hidden, prompt=None, prompt_mask=None):
        hidden = self.attn1(self.norm1(hidden)) + hidden
        h = self.norm2(hidden)
        h = self.attn2(h, context=prompt, mask=prompt_mask)
        hidden = h + hidden
        hidden = self.ff(self.norm3(hidden)) + hidden
        return hidden


PATIENT = PromptedBlock(12, 2, 5, context_dim=7)
FACTS = {
    "order": "pre",
    "layout": "BND",
    "causal": False,
    "padding": "keep",
    "self_attention": "attn1",
    "cross_attention": "attn2",
    "feed_forward": "ff",
    "norms": ["norm1", "norm2", "norm3"],
    "n_heads": 2,
    "dropout": 0.1,
}
INPUTS = {"hidden": "b n 12", "prompt": "b m 7", "prompt_mask?": "real b m"}
