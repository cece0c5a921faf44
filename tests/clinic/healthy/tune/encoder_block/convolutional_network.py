"""Speech: the network is two convolutions; what is padding stays zero."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class MultiHead(nn.Module):
    def __init__(self, n_head, d_model, d_k):
        super().__init__()
        self.n_head, self.d_k = n_head, d_k
        self.w_qs = nn.Linear(d_model, n_head * d_k)
        self.w_ks = nn.Linear(d_model, n_head * d_k)
        self.w_vs = nn.Linear(d_model, n_head * d_k)
        self.layer_norm = nn.LayerNorm(d_model)
        self.fc = nn.Linear(n_head * d_k, d_model)
        self.dropout = nn.Dropout(0.1)

    def forward(self, x, mask=None):
        size, length, _ = x.shape
        q, k, v = [
            w(x)
            .view(size, length, self.n_head, self.d_k)
            .permute(2, 0, 1, 3)
            .reshape(-1, length, self.d_k)  # (n*b) x l x d
            for w in (self.w_qs, self.w_ks, self.w_vs)
        ]
        attn = torch.bmm(q, k.transpose(1, 2)) / self.d_k**0.5
        if mask is not None:
            slf_attn_mask = mask.unsqueeze(1).expand(-1, length, -1)
            slf_attn_mask = slf_attn_mask.repeat(self.n_head, 1, 1)
            attn = attn.masked_fill(slf_attn_mask, -torch.inf)
        output = torch.bmm(torch.softmax(attn, dim=2), v)
        output = output.view(self.n_head, size, length, self.d_k)
        output = output.permute(1, 2, 0, 3).reshape(size, length, -1)
        return self.layer_norm(self.dropout(self.fc(output)) + x)


class PositionwiseConv(nn.Module):
    def __init__(self, d_in, d_hid, kernel_size):
        super().__init__()
        self.w_1 = nn.Conv1d(d_in, d_hid, kernel_size, padding="same")
        self.w_2 = nn.Conv1d(d_hid, d_in, 1)
        self.layer_norm = nn.LayerNorm(d_in)

    def forward(self, x):
        output = self.w_2(F.relu(self.w_1(x.transpose(1, 2))))
        return self.layer_norm(output.transpose(1, 2) + x)


class FFTBlock(nn.Module):
    """Feed-forward transformer: nothing to do with frequencies."""

    def __init__(self, d_model, d_inner, n_head, d_k, kernel_size=3):
        super().__init__()
        self.slf_attn = MultiHead(n_head, d_model, d_k)
        self.pos_ffn = PositionwiseConv(d_model, d_inner, kernel_size)

    def forward(self, enc_input, mask=None):
        x = self.slf_attn(enc_input, mask)
        if mask is not None:
            x = x.masked_fill(mask.unsqueeze(-1), 0)
        x = self.pos_ffn(x)
        if mask is not None:
            x = x.masked_fill(mask.unsqueeze(-1), 0)
        return x


PATIENT = FFTBlock(10, 16, n_head=2, d_k=4)
FACTS = {
    "order": "post",
    "formula": "own",
    "layout": "BND",
    "padding": "block",
    "attention": "slf_attn",
    "feed_forward": "pos_ffn",
    "norms": ["slf_attn.layer_norm", "pos_ffn.layer_norm"],
    "n_heads": 2,
    "dropout": 0.1,
}
INPUTS = {"enc_input": "b n 10", "mask?": "padding b n"}
