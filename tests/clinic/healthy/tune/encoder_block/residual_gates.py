"""No norms at all: a learnt number for each residual, zero at first."""

from collections import OrderedDict

import torch
from torch import Tensor, nn


class RZTXEncoderLayer(nn.Module):
    def __init__(self, d_model, nhead, dim_feedforward, dropout=0.1):
        super().__init__()
        self.self_attn = nn.MultiheadAttention(d_model, nhead)
        self.net = nn.Sequential(
            OrderedDict(
                linear1=nn.Linear(d_model, dim_feedforward),
                activation=nn.ReLU(),
                dropout=nn.Dropout(dropout),
                linear2=nn.Linear(dim_feedforward, d_model),
            )
        )
        self.dropout1 = nn.Dropout(dropout)
        self.dropout2 = nn.Dropout(dropout)
        self.resweight = nn.Parameter(torch.zeros(1))

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
    ) -> Tensor:
        src2 = self.self_attn(
            src,
            src,
            src,
            attn_mask=src_mask,
            key_padding_mask=src_key_padding_mask,
            need_weights=False,
        )[0]
        src = src + self.dropout1(src2) * self.resweight
        src2 = self.net(src)
        return src + self.dropout2(src2) * self.resweight


PATIENT = RZTXEncoderLayer(12, 2, 20)
FACTS = {
    "formula": "own",
    "layout": "NBD",
    "padding": "block",
    "attention": "self_attn",
    "feed_forward": "net",
    "residual_scale": ("resweight", "resweight"),
    "n_heads": 2,
    "dropout": 0.1,
}
INPUTS = {"src": "n b 12", "src_key_padding_mask?": "padding b n"}
