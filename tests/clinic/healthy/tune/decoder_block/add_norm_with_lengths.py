"""A textbook's block: valid lengths instead of masks, add and norm."""

import math

import torch
from torch import nn


def masked_softmax(X, valid_lens):
    """X: a 3-D tensor; valid_lens: 1-D or 2-D, or there are none"""
    if valid_lens is None:
        return nn.functional.softmax(X, dim=-1)
    if valid_lens.dim() == 1:
        valid_lens = valid_lens[:, None].expand(-1, X.shape[1])
    keys = torch.arange(X.shape[2], device=X.device)
    X = X.masked_fill(keys >= valid_lens[:, :, None], float("-inf"))
    return nn.functional.softmax(X, dim=-1)


class MultiHeadAttention(nn.Module):
    def __init__(self, num_hiddens, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.W_q = nn.Linear(num_hiddens, num_hiddens, bias=False)
        self.W_k = nn.Linear(num_hiddens, num_hiddens, bias=False)
        self.W_v = nn.Linear(num_hiddens, num_hiddens, bias=False)
        self.W_o = nn.Linear(num_hiddens, num_hiddens, bias=False)

    def transpose_qkv(self, X):
        X = X.reshape(X.shape[0], X.shape[1], self.num_heads, -1)
        X = X.permute(0, 2, 1, 3)
        return X.reshape(-1, X.shape[2], X.shape[3])

    def forward(self, queries, keys, values, valid_lens):
        q = self.transpose_qkv(self.W_q(queries))
        k = self.transpose_qkv(self.W_k(keys))
        v = self.transpose_qkv(self.W_v(values))
        if valid_lens is not None:
            # text 0 for all heads, then text 1, and so on
            valid_lens = valid_lens.repeat_interleave(self.num_heads, dim=0)
        scores = torch.bmm(q, k.transpose(1, 2)) / math.sqrt(q.shape[-1])
        output = torch.bmm(masked_softmax(scores, valid_lens), v)
        output = output.reshape(-1, self.num_heads, *output.shape[1:])
        return self.W_o(output.permute(0, 2, 1, 3).flatten(2))


class AddNorm(nn.Module):
    def __init__(self, norm_shape, dropout):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.ln = nn.LayerNorm(norm_shape)

    def forward(self, X, Y):
        return self.ln(self.dropout(Y) + X)


class DecoderBlock(nn.Module):
    def __init__(self, num_hiddens, ffn_hiddens, num_heads, dropout):
        super().__init__()
        self.attention1 = MultiHeadAttention(num_hiddens, num_heads)
        self.addnorm1 = AddNorm(num_hiddens, dropout)
        self.attention2 = MultiHeadAttention(num_hiddens, num_heads)
        self.addnorm2 = AddNorm(num_hiddens, dropout)
        self.dense1 = nn.Linear(num_hiddens, ffn_hiddens)
        self.dense2 = nn.Linear(ffn_hiddens, num_hiddens)
        self.addnorm3 = AddNorm(num_hiddens, dropout)

    def forward(self, X, enc_outputs, enc_valid_lens=None):
        # token t may see t tokens, counted from one
        dec_valid_lens = torch.arange(1, X.shape[1] + 1, device=X.device)
        dec_valid_lens = dec_valid_lens.repeat(X.shape[0], 1)
        Y = self.addnorm1(X, self.attention1(X, X, X, dec_valid_lens))
        memory = enc_outputs
        Y2 = self.attention2(Y, memory, memory, enc_valid_lens)
        Z = self.addnorm2(Y, Y2)
        return self.addnorm3(Z, self.dense2(self.dense1(Z).relu()))


PATIENT = DecoderBlock(12, 16, 3, 0.1)
FACTS = {
    "order": "post",
    "layout": "BND",
    "mask": "lengths",
    "self_attention": "attention1",
    "cross_attention": "attention2",
    "flat_feed_forward": ("dense1", "relu", "dense2"),
    "norms": ["addnorm1.ln", "addnorm2.ln", "addnorm3.ln"],
    "n_heads": 3,
    "dropout": 0.1,
}
INPUTS = {
    "X": "b n 12",
    "enc_outputs": "b m 12",
    "enc_valid_lens?": "lengths b m",
}
