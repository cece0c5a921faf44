"""Scores of a small network that adds query and key, from translation."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class BahdanauAttention(nn.Module):
    def __init__(self, dec_hid_dim, enc_hid_dim, attn_dim):
        super().__init__()
        self.Wa = nn.Linear(dec_hid_dim, attn_dim)
        self.Ua = nn.Linear(enc_hid_dim, attn_dim)
        self.Va = nn.Linear(attn_dim, 1, bias=False)

    def forward(self, hidden, encoder_outputs, mask=None):
        # hidden = [batch, trg len, dec hid dim]
        # encoder_outputs = [batch, src len, enc hid dim]
        trg_len, src_len = hidden.shape[1], encoder_outputs.shape[1]
        query = self.Wa(hidden).unsqueeze(2).repeat(1, 1, src_len, 1)
        keys = self.Ua(encoder_outputs).unsqueeze(1).repeat(1, trg_len, 1, 1)
        energy = torch.tanh(query + keys)
        attention = self.Va(energy).squeeze(-1)  # [batch, trg len, src len]

        if mask is not None:
            attention = attention.masked_fill(mask.unsqueeze(1) == 0, -1e10)
        weights = F.softmax(attention, dim=-1)

        context = torch.bmm(weights, encoder_outputs)
        return context, weights


PATIENT = BahdanauAttention(8, 6, attn_dim=10)
FACTS = {
    "layout": "BND",
    "causal": False,
    "formula": "own",
    "padding": "keep",
    "n_heads": 1,
    "dtypes": ("float64", "float32", "bfloat16"),
}
INPUTS = {
    "hidden": "b n 8",
    "encoder_outputs": "b m 6",
    "mask?": "real b m",
}
