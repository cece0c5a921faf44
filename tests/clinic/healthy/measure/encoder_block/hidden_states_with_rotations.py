"""A language model's layer by a config: rotations, fewer heads for keys."""

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import nn


@dataclass(frozen=True)
class ModelConfig:
    hidden_size: int = 16
    intermediate_size: int = 22
    num_attention_heads: int = 4
    num_key_value_heads: int = 2
    rms_norm_eps: float = 1e-5
    rope_theta: float = 10_000.0

    @cached_property
    def head_dim(self) -> int:
        return self.hidden_size // self.num_attention_heads


class RMSNorm(nn.Module):
    def __init__(self, config: ModelConfig):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(config.hidden_size))
        self.eps = config.rms_norm_eps

    def forward(self, hidden_states):
        mean_square = hidden_states.square().mean(dim=-1, keepdim=True)
        return self.weight * hidden_states / (mean_square + self.eps).sqrt()


def apply_rope(states, theta):
    """Halves are turned against each other. states: (b, heads, n, d)."""
    n, d = states.shape[-2:]
    options = {"device": states.device, "dtype": torch.float64}
    inv_freq = theta ** -(torch.arange(0, d, 2, **options) / d)
    angles = torch.outer(torch.arange(n, **options), inv_freq)
    cos = angles.cos().repeat(1, 2).to(states.dtype)
    sin = angles.sin().repeat(1, 2).to(states.dtype)
    left, right = states.chunk(2, dim=-1)
    return states * cos + torch.cat((-right, left), dim=-1) * sin


class SelfAttention(nn.Module):
    def __init__(self, config: ModelConfig):
        super().__init__()
        self.config = config
        kv_size = config.num_key_value_heads * config.head_dim
        self.q_proj = nn.Linear(config.hidden_size, config.hidden_size)
        self.k_proj = nn.Linear(config.hidden_size, kv_size)
        self.v_proj = nn.Linear(config.hidden_size, kv_size)
        self.o_proj = nn.Linear(
            config.hidden_size, config.hidden_size, bias=False
        )

    def forward(self, hidden_states, attention_mask=None):
        cfg = self.config
        query, key, value = (
            proj(hidden_states).unflatten(-1, (-1, cfg.head_dim))
            for proj in (self.q_proj, self.k_proj, self.v_proj)
        )
        query = apply_rope(query.transpose(1, 2), cfg.rope_theta)
        key = apply_rope(key.transpose(1, 2), cfg.rope_theta)
        times = cfg.num_attention_heads // cfg.num_key_value_heads
        key = key.repeat_interleave(times, dim=1)
        value = value.transpose(1, 2).repeat_interleave(times, dim=1)
        scores = query @ key.mT * cfg.head_dim**-0.5
        if attention_mask is not None:
            scores = scores + attention_mask
        context = scores.softmax(dim=-1) @ value
        return self.o_proj(context.transpose(1, 2).flatten(2))


class GatedMLP(nn.Module):
    def __init__(self, config: ModelConfig):
        super().__init__()
        hidden, inner = config.hidden_size, config.intermediate_size
        self.gate_proj = nn.Linear(hidden, inner, bias=False)
        self.up_proj = nn.Linear(hidden, inner, bias=False)
        self.down_proj = nn.Linear(inner, hidden, bias=False)

    def forward(self, x):
        gate = nn.functional.silu(self.gate_proj(x))
        return self.down_proj(gate * self.up_proj(x))


class ModelDecoderLayer(nn.Module):
    """A decoder by name only: there is nothing else to look at."""

    def __init__(self, config: ModelConfig):
        super().__init__()
        self.input_layernorm = RMSNorm(config)
        self.self_attn = SelfAttention(config)
        self.post_attention_layernorm = RMSNorm(config)
        self.mlp = GatedMLP(config)

    def forward(self, hidden_states, attention_mask=None):
        residual = hidden_states
        hidden_states = self.input_layernorm(hidden_states)
        hidden_states = self.self_attn(
            hidden_states, attention_mask=attention_mask
        )
        hidden_states = residual + hidden_states

        residual = hidden_states
        hidden_states = self.post_attention_layernorm(hidden_states)
        hidden_states = residual + self.mlp(hidden_states)
        return (hidden_states,)


PATIENT = ModelDecoderLayer(ModelConfig())
FACTS = {
    "order": "pre",
    "layout": "BND",
    "mask": "add",
    "mask_axes": "B1NN",
    "positions": "rotary",
    "attention": "self_attn",
    "feed_forward": "mlp",
    "norms": ["input_layernorm", "post_attention_layernorm"],
    "n_heads": 4,
}
INPUTS = {
    "hidden_states": "b n 16",
    "attention_mask?": "add b 1 n n",
}
