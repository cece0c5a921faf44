"""Tokens before texts on both sides, folded heads, an added mask."""

import torch
from torch import nn


class EncoderDecoderAttention(nn.Module):
    def __init__(self, dim, kdim, heads):
        super().__init__()
        self.heads, self.width = heads, dim // heads
        self.w_q = nn.Linear(dim, dim, bias=False)
        self.w_k = nn.Linear(kdim, dim, bias=False)
        self.w_v = nn.Linear(kdim, dim, bias=False)
        self.w_o = nn.Linear(dim, dim, bias=False)

    def fold(self, x):
        x = x.reshape(x.size(0), -1, self.width)
        return x.transpose(0, 1)

    def forward(self, x, encoder_output, attn_mask=None):
        q = self.fold(self.w_q(x)) / self.width**0.5
        k = self.fold(self.w_k(encoder_output))
        v = self.fold(self.w_v(encoder_output))
        logits = torch.bmm(q, k.transpose(1, 2))
        if attn_mask is not None:
            logits = logits + attn_mask
        mixed = torch.bmm(logits.softmax(dim=2), v)
        return self.w_o(mixed.transpose(0, 1).reshape(x.shape))


PATIENT = EncoderDecoderAttention(12, 9, 3)
FACTS = {
    "layout": "NBD",
    "mask": "add",
    "mask_axes": "NN",
    "empty_row": "nan",
    "n_heads": 3,
}
INPUTS = {
    "x": "n b 12",
    "encoder_output": "m b 9",
    "attn_mask?": "add n m",
}
