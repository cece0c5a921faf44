"""As large models are written now: normed, rotated, grouped, eager."""

from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class TextConfig:
    hidden_size: int = 16
    num_attention_heads: int = 4
    num_key_value_heads: int = 2
    head_dim: int = 6
    rms_norm_eps: float = 1e-6
    rope_theta: float = 10000.0
    attention_dropout: float = 0.1


class HeadNorm(nn.Module):
    def __init__(self, hidden_size, eps):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden_size))
        self.eps = eps

    def forward(self, hidden_states):
        variance = hidden_states.pow(2).mean(-1, keepdim=True)
        return self.weight * hidden_states * torch.rsqrt(variance + self.eps)


def rotate_half(x):
    x1, x2 = torch.chunk(x, 2, dim=-1)
    return torch.cat((-x2, x1), dim=-1)


def apply_rotary_pos_emb(q, k, cos, sin):
    cos, sin = cos.unsqueeze(1), sin.unsqueeze(1)  # for all heads
    q = q * cos + rotate_half(q) * sin
    k = k * cos + rotate_half(k) * sin
    return q, k


def repeat_kv(hidden_states, n_rep):
    return torch.repeat_interleave(hidden_states, dim=1, repeats=n_rep)


def eager_attention_forward(
    module, query, key, value, attention_mask, scaling, dropout=0.0
):
    key = repeat_kv(key, module.num_key_value_groups)
    value = repeat_kv(value, module.num_key_value_groups)
    weights = torch.matmul(query, key.transpose(2, 3)) * scaling
    if attention_mask is not None:
        weights = weights + attention_mask[:, :, :, : key.shape[-2]]
    weights = nn.functional.softmax(weights, dim=-1)
    weights = nn.functional.dropout(
        weights, p=dropout, training=module.training
    )
    attn_output = torch.matmul(weights, value)
    return attn_output.transpose(1, 2).contiguous(), weights


class Attention(nn.Module):
    def __init__(self, config: TextConfig):
        super().__init__()
        self.config = config
        self.head_dim = config.head_dim
        self.num_key_value_groups = (
            config.num_attention_heads // config.num_key_value_heads
        )
        self.scaling = self.head_dim**-0.5
        q_size = config.num_attention_heads * self.head_dim
        kv_size = config.num_key_value_heads * self.head_dim
        self.q_proj = nn.Linear(config.hidden_size, q_size, bias=False)
        self.k_proj = nn.Linear(config.hidden_size, kv_size, bias=False)
        self.v_proj = nn.Linear(config.hidden_size, kv_size, bias=False)
        self.o_proj = nn.Linear(q_size, config.hidden_size, bias=False)
        self.q_norm = HeadNorm(self.head_dim, eps=config.rms_norm_eps)
        self.k_norm = HeadNorm(self.head_dim, eps=config.rms_norm_eps)

    def rotary(self, x):
        dim, theta = self.head_dim, self.config.rope_theta
        power = torch.arange(0, dim, 2, dtype=x.dtype, device=x.device) / dim
        place = torch.arange(x.shape[1], dtype=x.dtype, device=x.device)
        freqs = place[None, :, None] / theta**power
        emb = torch.cat((freqs, freqs), dim=-1)
        return emb.cos(), emb.sin()

    def forward(self, hidden_states, attention_mask=None):
        input_shape = hidden_states.shape[:-1]
        hidden_shape = (*input_shape, -1, self.head_dim)
        q = self.q_norm(self.q_proj(hidden_states).view(hidden_shape))
        k = self.k_norm(self.k_proj(hidden_states).view(hidden_shape))
        v = self.v_proj(hidden_states).view(hidden_shape)
        q, k, v = q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)
        cos, sin = self.rotary(hidden_states)
        q, k = apply_rotary_pos_emb(q, k, cos, sin)
        dropout = self.config.attention_dropout if self.training else 0.0
        attn_output, attn_weights = eager_attention_forward(
            self, q, k, v, attention_mask, self.scaling, dropout
        )
        attn_output = attn_output.reshape(*input_shape, -1)
        return self.o_proj(attn_output), attn_weights


PATIENT = Attention(TextConfig())
FACTS = {
    "layout": "BND",
    "causal": False,
    "formula": "own",
    "positions": "rotary",
    "mask": "add",
    "mask_axes": "B1NN",
    "empty_row": "nan",
    "n_heads": 4,
    "dropout": 0.1,
    "dtypes": ("float64", "float32"),
}
INPUTS = {"hidden_states": "b n 16", "attention_mask?": "add b 1 n n"}
