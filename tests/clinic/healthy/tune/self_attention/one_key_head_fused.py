"""One map into all queries and a single key and value, as in code models."""

import torch
import torch.nn.functional as F
from torch import nn


class MultiQueryAttention(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.embed_dim = config["n_embd"]
        self.num_heads = config["n_head"]
        self.head_dim = self.embed_dim // self.num_heads
        self.kv_dim = self.head_dim
        self.c_attn = nn.Linear(
            self.embed_dim, self.embed_dim + 2 * self.kv_dim
        )
        self.c_proj = nn.Linear(self.embed_dim, self.embed_dim)
        self.resid_dropout = nn.Dropout(config["resid_pdrop"])

        n = config["n_positions"]
        triangle = torch.tril(torch.ones((n, n), dtype=torch.bool))
        self.register_buffer("bias", triangle, persistent=False)

    def _attn(self, query, key, value):
        # (batch, seq, heads * dim) x (batch, dim, seq); queries of all
        # heads lie in one row of (seq * heads)
        batch_size, query_length, _ = query.shape
        key_length = key.size(1)
        query = query.reshape(
            batch_size, query_length * self.num_heads, self.head_dim
        )
        attn_weights = torch.bmm(query * self.head_dim**-0.5, key.mT)
        attn_weights = attn_weights.view(
            batch_size, query_length, self.num_heads, key_length
        )
        causal_mask = self.bias[None, :query_length, None, :key_length]
        attn_weights = torch.where(causal_mask, attn_weights, -torch.inf)
        attn_weights = F.softmax(attn_weights, dim=-1)
        attn_weights = attn_weights.view(batch_size, -1, key_length)
        return torch.bmm(attn_weights, value)

    def forward(self, hidden_states):
        query, key_value = self.c_attn(hidden_states).split(
            (self.embed_dim, 2 * self.kv_dim), dim=2
        )
        key, value = key_value.split((self.head_dim, self.head_dim), dim=-1)
        attn_output = self._attn(query, key, value).view(query.shape)
        return self.resid_dropout(self.c_proj(attn_output))


PATIENT = MultiQueryAttention(
    {"n_embd": 12, "n_head": 3, "n_positions": 20, "resid_pdrop": 0.1}
)
FACTS = {
    "layout": "BND",
    "causal": True,
    "packed": "by group",
    "n_heads": 3,
    "longest": 20,
    "dropout": 0.1,
}
INPUTS = {"hidden_states": "b n 12"}
SIZES = {"n": (1, 20)}
