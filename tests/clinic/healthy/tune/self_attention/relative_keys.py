"""Distances have keys and values of their own, clipped at two. Causal."""

import torch
import torch.nn as nn


class RelativePosition(nn.Module):
    def __init__(self, num_units, max_relative_position):
        super().__init__()
        self.max_relative_position = max_relative_position
        rows = max_relative_position * 2 + 1
        self.embeddings_table = nn.Parameter(torch.empty(rows, num_units))
        nn.init.xavier_uniform_(self.embeddings_table)

    def forward(self, length):
        r = torch.arange(length, device=self.embeddings_table.device)
        distance = r[None, :] - r[:, None]
        far = self.max_relative_position
        return self.embeddings_table[distance.clamp(-far, far) + far]


class RelativeSelfAttention(nn.Module):
    def __init__(self, hid_dim, n_heads):
        super().__init__()
        self.hid_dim = hid_dim
        self.n_heads = n_heads
        self.head_dim = hid_dim // n_heads
        self.relative_position_k = RelativePosition(self.head_dim, 2)
        self.relative_position_v = RelativePosition(self.head_dim, 2)
        self.fc_q = nn.Linear(hid_dim, hid_dim)
        self.fc_k = nn.Linear(hid_dim, hid_dim)
        self.fc_v = nn.Linear(hid_dim, hid_dim)
        self.fc_o = nn.Linear(hid_dim, hid_dim)
        self.dropout = nn.Dropout(0.1)

    def forward(self, x):
        batch_size, length, _ = x.shape
        shape = batch_size, length, self.n_heads, self.head_dim
        query = self.fc_q(x).view(shape)
        key = self.fc_k(x).view(shape)
        value = self.fc_v(x).view(shape)

        attn1 = torch.einsum("bqhd,bkhd->bhqk", query, key)
        r_k = self.relative_position_k(length)
        attn2 = torch.einsum("bqhd,qkd->bhqk", query, r_k)
        attn = (attn1 + attn2) / self.head_dim**0.5
        ahead = torch.ones(length, length, device=x.device).triu(1).bool()
        attn = attn.masked_fill(ahead, float("-inf"))
        attn = self.dropout(torch.softmax(attn, dim=-1))

        weight1 = torch.einsum("bhqk,bkhd->bqhd", attn, value)
        r_v = self.relative_position_v(length)
        weight2 = torch.einsum("bhqk,qkd->bqhd", attn, r_v)
        y = (weight1 + weight2).reshape(batch_size, length, self.hid_dim)
        return self.fc_o(y)


PATIENT = RelativeSelfAttention(12, 3)
FACTS = {
    "layout": "BND",
    "causal": True,
    "formula": "own",
    "positions": "relative",
    "n_heads": 3,
    "dropout": 0.1,
}
INPUTS = {"x": "b n 12"}
