"""Of a large language model: wqkv by groups, config, causal by itself."""

from dataclasses import dataclass

import torch.nn.functional as F
from torch import nn


@dataclass(frozen=True)
class Config:
    hidden_size: int = 16
    num_attention_heads: int = 4
    num_key_value_heads: int = 2
    bias: bool = False

    @property
    def head_dim(self) -> int:
        return self.hidden_size // self.num_attention_heads

    @property
    def queries_of_a_key(self) -> int:
        return self.num_attention_heads // self.num_key_value_heads


class GroupedAttention(nn.Module):
    def __init__(self, config: Config, layer_idx: int = 0):
        super().__init__()
        self.config, self.layer_idx = config, layer_idx
        rows = config.num_key_value_heads * (config.queries_of_a_key + 2)
        self.wqkv = nn.Linear(
            config.hidden_size, rows * config.head_dim, bias=config.bias
        )
        self.wo = nn.Linear(
            config.hidden_size, config.hidden_size, bias=config.bias
        )

    def forward(self, hidden_states, attention_mask=None):
        """attention_mask: (batch, tokens), True for words."""
        c = self.config
        bsz, q_len, _ = hidden_states.shape
        packed = self.wqkv(hidden_states).view(
            bsz, q_len, c.num_key_value_heads, -1, c.head_dim
        )
        q, k, v = packed.split([c.queries_of_a_key, 1, 1], dim=3)
        q, k, v = (t.flatten(2, 3).transpose(1, 2) for t in (q, k, v))
        mask = None
        if attention_mask is not None:
            mask = attention_mask.new_ones(q_len, q_len).tril()
            mask = mask & attention_mask[:, None, None, :]
        out = F.scaled_dot_product_attention(
            q, k, v, mask, is_causal=mask is None, enable_gqa=True
        )
        return self.wo(out.transpose(1, 2).flatten(2)), None


PATIENT = GroupedAttention(Config())
FACTS = {
    "layout": "BND",
    "causal": True,
    "padding": "keep",
    "names": {"x": "hidden_states", "padding": "attention_mask"},
    "packed": "by group",
    "projections": {"qkv": "wqkv", "out": "wo"},
    "d_model": 16,
    "n_heads": 4,
    "dtypes": ("float64", "float32", "bfloat16"),
}
INPUTS = {"hidden_states": "b n 16", "attention_mask?": "real b n"}
