"""The network lies flat in the block, its mask is called src_mask."""

import torch
from torch import nn


class EncoderLayer(nn.Module):
    def __init__(self, d_model, nhead, dim_feedforward, dropout=0.1):
        super().__init__()
        self.self_attn = nn.MultiheadAttention(
            d_model, nhead, dropout=dropout, batch_first=True
        )
        self.fc1 = nn.Linear(d_model, dim_feedforward)
        self.fc2 = nn.Linear(dim_feedforward, d_model)
        self.ln1 = nn.LayerNorm(d_model)
        self.ln2 = nn.LayerNorm(d_model)
        self.drop = nn.Dropout(dropout)

    def forward(self, src, src_mask=None):
        x = self.ln1(src)
        x, _ = self.self_attn(x, x, x, attn_mask=src_mask, need_weights=False)
        src = src + self.drop(x)
        x = self.ln2(src)
        x = self.fc2(torch.relu(self.fc1(x)))
        return src + self.drop(x)


PATIENT = EncoderLayer(12, 3, 19)
FACTS = {
    "order": "pre",
    "mask": "block",
    "layout": "BND",
    "flat_feed_forward": ("fc1", "relu", "fc2"),
    "dropout": 0.1,
}
INPUTS = {"src": "b n 12", "src_mask?": "block n n"}
