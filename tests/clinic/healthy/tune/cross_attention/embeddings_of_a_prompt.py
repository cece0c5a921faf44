"""Words of a prompt are grouped keys; queries are normed, and so are keys."""

from functools import partial

import torch
from torch import nn

Map = partial(nn.Linear, bias=False)


class PromptAttention(nn.Module):
    def __init__(self, dim, prompt_dim, heads, kv_heads, head_dim):
        super().__init__()
        assert heads % kv_heads == 0
        self.shape = heads, kv_heads, head_dim
        self.wq = Map(dim, heads * head_dim)
        self.wk = Map(prompt_dim, kv_heads * head_dim)
        self.wv = Map(prompt_dim, kv_heads * head_dim)
        self.wo = Map(heads * head_dim, dim)
        self.q_norm = nn.RMSNorm(head_dim, eps=1e-5)
        self.k_norm = nn.RMSNorm(head_dim, eps=1e-5)

    def forward(self, prompt, prompt_lengths, x):
        heads, kv_heads, head_dim = self.shape
        q = self.q_norm(self.wq(x).unflatten(-1, (heads, head_dim)))
        k = self.k_norm(self.wk(prompt).unflatten(-1, (kv_heads, head_dim)))
        v = self.wv(prompt).unflatten(-1, (kv_heads, head_dim))
        out = [
            self.one(q_, k_[:length], v_[:length])
            for q_, k_, v_, length in zip(
                q, k, v, prompt_lengths.tolist(), strict=True
            )
        ]
        return self.wo(torch.stack(out).flatten(-2))

    def one(self, q, k, v):
        """A text alone, and of its prompt only what is there."""
        q = q.unflatten(1, (k.shape[1], -1))
        scores = torch.einsum("ngrd,mgd->ngrm", q, k) * q.shape[-1] ** -0.5
        out = torch.einsum("ngrm,mgd->ngrd", scores.softmax(dim=-1), v)
        return out.flatten(1, 2)


PATIENT = PromptAttention(10, 6, heads=4, kv_heads=2, head_dim=3)
FACTS = {
    "layout": "BND",
    "causal": False,
    "formula": "own",
    "mask": "lengths",
    "n_heads": 4,
}
INPUTS = {
    "x": "b n 10",
    "prompt": "b m 6",
    "prompt_lengths": "lengths b m",
}
