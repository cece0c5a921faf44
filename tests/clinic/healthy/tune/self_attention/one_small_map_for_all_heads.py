"""Values, keys, queries in this order; every head is mapped by one map."""

import torch
import torch.nn as nn


class SelfAttention(nn.Module):
    def __init__(self, emb_size, heads):
        super(SelfAttention, self).__init__()  # noqa: UP008
        self.heads = heads
        self.head_dim = emb_size // heads
        assert self.head_dim * heads == emb_size, "emb_size % heads != 0"

        # on the pieces, after they are cut: head_dim -> head_dim
        self.v_map = nn.Linear(self.head_dim, self.head_dim, bias=False)
        self.k_map = nn.Linear(self.head_dim, self.head_dim, bias=False)
        self.q_map = nn.Linear(self.head_dim, self.head_dim, bias=False)
        self.fc_out = nn.Linear(emb_size, emb_size)

    def pieces(self, t):
        N, length, _ = t.shape
        return t.reshape(N, length, self.heads, self.head_dim)

    def forward(self, values, keys, queries, mask=None):
        values = self.v_map(self.pieces(values))  # N, len, heads, head_dim
        keys = self.k_map(self.pieces(keys))
        queries = self.q_map(self.pieces(queries))

        energy = torch.einsum("nqhd,nkhd->nhqk", [queries, keys])
        if mask is not None:
            energy = energy.masked_fill(mask == 0, float("-1e20"))
        energy = energy / (self.head_dim ** (1 / 2))
        attention = torch.softmax(energy, dim=3)

        out = torch.einsum("nhqk,nkhd->nqhd", [attention, values])
        N, q_len, _, _ = out.shape
        return self.fc_out(out.reshape(N, q_len, self.heads * self.head_dim))


PATIENT = SelfAttention(12, 3)
FACTS = {
    "layout": "BND",
    "causal": False,
    "mask": "keep",
    "mask_axes": "B1NN",
    "empty_row": "average",
    "n_heads": 3,
    "dtypes": ("float64", "float32", "bfloat16"),
}
INPUTS = {
    "queries": "b n 12",
    "values": "=queries",
    "keys": "=queries",
    "mask?": "keep b 1 n n",
}
