"""The library's fused function if it will do, else the same by hand."""

import math
from dataclasses import dataclass

import torch
import torch.nn as nn
from torch.nn import functional as F


@dataclass
class GPTConfig:
    n_head: int = 4
    n_embd: int = 16
    dropout: float = 0.2
    bias: bool = True


class CausalAttention(nn.Module):
    def __init__(self, config: GPTConfig):
        super().__init__()
        assert config.n_embd % config.n_head == 0
        self.n_head, self.dropout = config.n_head, config.dropout
        bias = config.bias
        self.c_attn = nn.Linear(config.n_embd, 3 * config.n_embd, bias=bias)
        self.c_proj = nn.Linear(config.n_embd, config.n_embd, bias=bias)
        self.attn_dropout = nn.Dropout(config.dropout)
        self.resid_dropout = nn.Dropout(config.dropout)
        self.flash = hasattr(F, "scaled_dot_product_attention")
        if not self.flash:
            print("WARNING: slow attention, PyTorch >= 2.0 has a fast one")

    def slow(self, q, k, v, pad_mask):
        T = q.size(-2)
        att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        causal = torch.tril(torch.ones(T, T, device=q.device)).bool()
        att = att.masked_fill(~causal, float("-inf"))
        if pad_mask is not None:
            att = att.masked_fill(~pad_mask[:, None, None, :], float("-inf"))
        att = self.attn_dropout(F.softmax(att, dim=-1))
        return att @ v

    def forward(self, x, pad_mask=None):
        B, T, C = x.size()
        qkv = self.c_attn(x).split(C, dim=2)
        q, k, v = (
            t.view(B, T, self.n_head, C // self.n_head).transpose(1, 2)
            for t in qkv
        )
        if self.flash and pad_mask is None:
            y = F.scaled_dot_product_attention(
                q,
                k,
                v,
                dropout_p=self.dropout if self.training else 0.0,
                is_causal=True,
            )
        else:
            # is_causal and a mask do not go together there
            y = self.slow(q, k, v, pad_mask)
        y = y.transpose(1, 2).contiguous().view(B, T, C)
        return self.resid_dropout(self.c_proj(y))


PATIENT = CausalAttention(GPTConfig())
FACTS = {
    "layout": "BND",
    "causal": True,
    "padding": "keep",
    "packed": "by part",
    "n_heads": 4,
    "dropout": 0.2,
}
INPUTS = {"x": "b n 16", "pad_mask?": "real b n"}
