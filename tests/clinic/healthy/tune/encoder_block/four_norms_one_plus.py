"""Of a small open model, as an encoder: four norms, and gains are one plus."""

import torch
import torch.nn.functional as F
from torch import nn


class RMSNorm(nn.Module):
    def __init__(self, dim, eps=1e-6):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.zeros(dim))

    def forward(self, x):
        mean = x.square().mean(-1, keepdim=True)
        return x * torch.rsqrt(mean + self.eps) * (1.0 + self.weight)


class Attention(nn.Module):
    def __init__(self, dim, heads, head_dim):
        super().__init__()
        self.heads = heads
        self.q_proj = nn.Linear(dim, heads * head_dim, bias=False)
        self.k_proj = nn.Linear(dim, heads * head_dim, bias=False)
        self.v_proj = nn.Linear(dim, heads * head_dim, bias=False)
        self.o_proj = nn.Linear(heads * head_dim, dim, bias=False)

    def forward(self, x, mask=None):
        q, k, v = (
            proj(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for proj in (self.q_proj, self.k_proj, self.v_proj)
        )
        out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return self.o_proj(out.transpose(1, 2).flatten(-2))


class MLP(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.gate_proj = nn.Linear(dim, hidden, bias=False)
        self.up_proj = nn.Linear(dim, hidden, bias=False)
        self.down_proj = nn.Linear(hidden, dim, bias=False)

    def forward(self, x):
        gate = F.gelu(self.gate_proj(x), approximate="tanh")
        return self.down_proj(gate * self.up_proj(x))


class EncoderLayer(nn.Module):
    def __init__(self, dim=12, heads=3, head_dim=5, hidden=20):
        super().__init__()
        self.self_attn = Attention(dim, heads, head_dim)
        self.mlp = MLP(dim, hidden)
        self.input_layernorm = RMSNorm(dim)
        self.post_attention_layernorm = RMSNorm(dim)
        self.pre_feedforward_layernorm = RMSNorm(dim)
        self.post_feedforward_layernorm = RMSNorm(dim)

    def forward(self, hidden_states, attention_mask=None):
        """attention_mask: (batch, 1, tokens, tokens), True: looked at."""
        residual = hidden_states
        h = self.self_attn(self.input_layernorm(residual), attention_mask)
        residual = residual + self.post_attention_layernorm(h)
        h = self.mlp(self.pre_feedforward_layernorm(residual))
        return residual + self.post_feedforward_layernorm(h)


PATIENT = EncoderLayer()
FACTS = {
    "layout": "BND",
    "order": "sandwich",
    "attention": "self_attn",
    "norms": (
        "input_layernorm",
        "post_attention_layernorm",
        "pre_feedforward_layernorm",
        "post_feedforward_layernorm",
    ),
    "feed_forward": "mlp",
    "mask": "keep",
    "names": {"x": "hidden_states", "mask": "attention_mask"},
    "dtypes": ("float64", "float32", "bfloat16"),
}
INPUTS = {"hidden_states": "b n 12", "attention_mask?": "keep b 1 n n"}
