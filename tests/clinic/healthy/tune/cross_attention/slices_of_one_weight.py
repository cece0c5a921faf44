"""As PyTorch did it once: one weight, cut where queries and keys end."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn import Parameter


class EncDecAttn(nn.Module):
    def __init__(self, num_heads, embed_dim, dropout=0.0):
        super().__init__()
        self.num_heads = num_heads
        self.embed_dim = embed_dim
        self.head_dim = embed_dim // num_heads
        self.dropout = dropout
        self.in_proj_weight = Parameter(torch.Tensor(3 * embed_dim, embed_dim))
        self.in_proj_bias = Parameter(torch.zeros(3 * embed_dim))
        self.out_proj_weight = Parameter(torch.Tensor(embed_dim, embed_dim))
        self.reset_parameters()

    def reset_parameters(self):
        nn.init.xavier_uniform_(self.in_proj_weight, gain=2**-0.5)
        nn.init.xavier_uniform_(self.out_proj_weight)

    def in_proj(self, x, start, end):
        weight = self.in_proj_weight[start:end]
        return F.linear(x, weight, self.in_proj_bias[start:end])

    def forward(self, query, key, attn_mask=None):
        E = self.embed_dim
        len_q, bsz = query.size(0), query.size(1)
        len_k = key.size(0)
        queries = self.in_proj(query, 0, E) * self.head_dim**-0.5
        keys, values = self.in_proj(key, E, 3 * E).split(E, dim=-1)

        rows = bsz * self.num_heads
        queries = queries.contiguous().view(len_q, rows, self.head_dim)
        keys = keys.contiguous().view(len_k, rows, self.head_dim)
        values = values.contiguous().view(len_k, rows, self.head_dim)

        scores = torch.bmm(queries.transpose(0, 1), keys.permute(1, 2, 0))
        if attn_mask is not None:
            # 1 means "do not look", for all texts and heads alike
            scores = scores.view(bsz, self.num_heads, len_q, len_k)
            scores = scores.masked_fill(attn_mask.bool(), -float("inf"))
            scores = scores.view(rows, len_q, len_k)
        probs = F.softmax(scores, dim=-1)
        probs = F.dropout(probs, p=self.dropout, training=self.training)
        mixed = torch.bmm(probs, values.transpose(0, 1)).transpose(0, 1)
        mixed = mixed.contiguous().view(len_q, bsz, E)
        coverage = probs.view(bsz, self.num_heads, len_q, len_k)
        return F.linear(mixed, self.out_proj_weight), coverage


PATIENT = EncDecAttn(3, 12, dropout=0.1)
FACTS = {
    "layout": "NBD",
    "mask": "block",
    "mask_axes": "NN",
    "empty_row": "nan",
    "packed": "by part",
    "matrices": "out, in",
    "n_heads": 3,
    "projections": {"qkv": "in_proj_weight", "out": "out_proj_weight"},
    "dropout": 0.1,
}
INPUTS = {"query": "n b 12", "key": "m b 12", "attn_mask?": "block n m"}
