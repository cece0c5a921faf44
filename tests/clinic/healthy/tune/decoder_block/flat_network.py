"""The network lies flat; padded words of the memory are hidden by key."""

import torch
from torch import nn


class DecoderBlock(nn.Module):
    def __init__(self, dim, heads, hidden, dropout=0.1):
        super().__init__()
        self.masked_attention = nn.MultiheadAttention(
            dim, heads, batch_first=True
        )
        self.encoder_attention = nn.MultiheadAttention(
            dim, heads, batch_first=True
        )
        self.linear_in = nn.Linear(dim, hidden)
        self.linear_out = nn.Linear(hidden, dim)
        self.norm_a = nn.LayerNorm(dim)
        self.norm_b = nn.LayerNorm(dim)
        self.norm_c = nn.LayerNorm(dim)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, enc, src_padding=None):
        n = x.size(1)
        future = torch.ones(n, n, dtype=torch.bool, device=x.device).triu(1)
        y = self.norm_a(x)
        y = self.masked_attention(y, y, y, attn_mask=future)[0]
        x = x + self.dropout(y)
        y = self.norm_b(x)
        y = self.encoder_attention(y, enc, enc, key_padding_mask=src_padding)[
            0
        ]
        x = x + self.dropout(y)
        y = self.norm_c(x)
        y = self.linear_out(torch.relu(self.linear_in(y)))
        return x + self.dropout(y)


PATIENT = DecoderBlock(12, 2, 18)
FACTS = {
    "order": "pre",
    "padding": "block",
    "layout": "BND",
    "self_attention": "masked_attention",
    "cross_attention": "encoder_attention",
    "flat_feed_forward": ("linear_in", "relu", "linear_out"),
    "dropout": 0.1,
}
INPUTS = {"x": "b n 12", "enc": "b m 12", "src_padding?": "padding b m"}
