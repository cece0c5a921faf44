"""Speech: channels in front inside, maps are convolutions of width one."""

import math

import torch
from torch import nn
from torch.nn import functional as F


class MultiHeadAttention(nn.Module):
    def __init__(self, channels, out_channels, n_heads, p_dropout=0.0):
        super().__init__()
        assert channels % n_heads == 0
        self.n_heads = n_heads
        self.k_channels = channels // n_heads
        self.conv_q = nn.Conv1d(channels, channels, 1)
        self.conv_k = nn.Conv1d(channels, channels, 1)
        self.conv_v = nn.Conv1d(channels, channels, 1)
        self.conv_o = nn.Conv1d(channels, out_channels, 1)
        self.drop = nn.Dropout(p_dropout)
        nn.init.xavier_uniform_(self.conv_q.weight)

    def attention(self, query, key, value, mask=None):
        b, d, t = query.size()
        query = query.view(b, self.n_heads, self.k_channels, t).mT
        key = key.view(b, self.n_heads, self.k_channels, t).mT
        value = value.view(b, self.n_heads, self.k_channels, t).mT
        scores = query @ key.mT / math.sqrt(self.k_channels)
        if mask is not None:
            scores = scores.masked_fill(mask == 0, -torch.inf)
        p_attn = self.drop(F.softmax(scores, dim=-1))
        output = p_attn @ value
        return output.mT.contiguous().view(b, d, t)

    def forward(self, x, x_mask=None):
        x = x.transpose(1, 2)
        q, k, v = self.conv_q(x), self.conv_k(x), self.conv_v(x)
        mask = None if x_mask is None else x_mask[:, None, None, :]
        x = self.attention(q, k, v, mask=mask)
        return self.conv_o(x).transpose(1, 2)


PATIENT = MultiHeadAttention(12, 12, 3, p_dropout=0.1)
FACTS = {
    "layout": "BND",
    "causal": False,
    "padding": "keep",
    "empty_row": "nan",
    "n_heads": 3,
    "projections": {
        "q": "conv_q",
        "k": "conv_k",
        "v": "conv_v",
        "out": "conv_o",
    },
    "dropout": 0.1,
}
INPUTS = {"x": "b n 12", "x_mask?": "real b n"}
