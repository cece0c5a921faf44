"""Attention and network side by side, behind one norm. Causal."""

import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, embed_dim, num_heads, max_positions):
        super().__init__()
        causal = torch.ones(max_positions, max_positions, dtype=torch.bool)
        self.register_buffer("causal_mask", causal.tril(), persistent=False)
        self.num_attention_heads = num_heads
        self.head_dim = embed_dim // num_heads
        self.scale_attn = self.head_dim**0.5
        self.k_proj = nn.Linear(embed_dim, embed_dim, bias=False)
        self.v_proj = nn.Linear(embed_dim, embed_dim, bias=False)
        self.q_proj = nn.Linear(embed_dim, embed_dim, bias=False)
        self.out_proj = nn.Linear(embed_dim, embed_dim, bias=False)

    def _split_heads(self, tensor):
        new_shape = tensor.size()[:-1]
        tensor = tensor.view(
            *new_shape, self.num_attention_heads, self.head_dim
        )
        return tensor.permute(0, 2, 1, 3)

    def forward(self, hidden_states):
        query = self._split_heads(self.q_proj(hidden_states))
        key = self._split_heads(self.k_proj(hidden_states))
        value = self._split_heads(self.v_proj(hidden_states))
        length = hidden_states.size(1)
        attn = torch.matmul(query, key.transpose(-1, -2)) / self.scale_attn
        attn = torch.where(
            self.causal_mask[:length, :length],
            attn,
            torch.finfo(attn.dtype).min,
        )
        attn = nn.functional.softmax(attn, dim=-1)
        out = torch.matmul(attn, value).permute(0, 2, 1, 3).contiguous()
        return self.out_proj(out.view(hidden_states.size()))


class MLP(nn.Module):
    def __init__(self, intermediate_size, embed_dim, dropout):
        super().__init__()
        self.fc_in = nn.Linear(embed_dim, intermediate_size)
        self.fc_out = nn.Linear(intermediate_size, embed_dim)
        self.act = nn.GELU(approximate="tanh")
        self.dropout = nn.Dropout(dropout)

    def forward(self, hidden_states):
        hidden_states = self.act(self.fc_in(hidden_states))
        return self.dropout(self.fc_out(hidden_states))


class Block(nn.Module):
    def __init__(self, n_embd=12, n_head=3, n_positions=16, pdrop=0.1):
        super().__init__()
        self.ln_1 = nn.LayerNorm(n_embd)
        self.attn = Attention(n_embd, n_head, n_positions)
        self.mlp = MLP(4 * n_embd, n_embd, pdrop)

    def forward(self, hidden_states):
        residual = hidden_states
        hidden_states = self.ln_1(hidden_states)
        attn_output = self.attn(hidden_states)
        feed_forward_hidden_states = self.mlp(hidden_states)
        return attn_output + feed_forward_hidden_states + residual


PATIENT = Block()
FACTS = {
    "order": "parallel",
    "formula": "own",
    "layout": "BND",
    "causal": True,
    "norms": ["ln_1"],
    "longest": 16,
    "dropout": 0.1,
}
INPUTS = {"hidden_states": "b n 12"}
SIZES = {"n": (1, 16)}
