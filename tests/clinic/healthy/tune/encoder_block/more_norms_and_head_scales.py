"""Norms before, and more of them inside; each head has a number of its own."""

import torch
import torch.nn.functional as F
from torch import nn


class NormBlock(nn.Module):
    def __init__(self, embed, heads, ffn, p=0.1):
        super().__init__()
        self.heads = heads
        self.ln_in = nn.LayerNorm(embed)
        self.q_proj = nn.Linear(embed, embed)
        self.k_proj = nn.Linear(embed, embed)
        self.v_proj = nn.Linear(embed, embed)
        self.c_attn = nn.Parameter(torch.ones(heads))
        self.out_proj = nn.Linear(embed, embed)
        self.ln_attn = nn.LayerNorm(embed)
        self.ln_mid = nn.LayerNorm(embed)
        self.fc1 = nn.Linear(embed, ffn)
        self.ln_ffn = nn.LayerNorm(ffn)
        self.fc2 = nn.Linear(ffn, embed)
        self.p = p

    def _split(self, t):
        n, b, c = t.shape
        # tokens, texts, features -> texts, heads, tokens, features
        return t.view(n, b, self.heads, c // self.heads).permute(1, 2, 0, 3)

    def self_attention(self, x, padding):
        q, k = self._split(self.q_proj(x)), self._split(self.k_proj(x))
        v = self._split(self.v_proj(x))
        logits = torch.einsum("bhqc,bhkc->bhqk", q, k)
        logits = logits / q.shape[-1] ** 0.5
        if padding is not None:
            logits = logits.masked_fill(padding[:, None, None], -torch.inf)
        y = torch.einsum("bhqk,bhkc->qbhc", logits.softmax(-1), v)
        y = y * self.c_attn.view(1, 1, -1, 1)
        return self.out_proj(y.flatten(2))

    def forward(self, x, encoder_padding_mask=None):
        residual = x
        x = self.self_attention(self.ln_in(x), encoder_padding_mask)
        x = F.dropout(self.ln_attn(x), self.p, self.training)
        x = residual + x

        residual = x
        x = F.gelu(self.fc1(self.ln_mid(x)))
        x = self.fc2(self.ln_ffn(x))
        return residual + F.dropout(x, self.p, self.training)


PATIENT = NormBlock(12, 4, 15)
FACTS = {
    "formula": "own",
    "layout": "NBD",
    "causal": False,
    "padding": "block",
    "flat_attention": ("q_proj", "k_proj", "v_proj", "out_proj"),
    "n_heads": 4,
    "dropout": 0.1,
}
INPUTS = {"x": "n b 12", "encoder_padding_mask?": "padding b n"}
