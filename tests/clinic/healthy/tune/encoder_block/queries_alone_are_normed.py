"""What a shopper will click: the norm is for queries, and they stay on."""

import torch
from torch import nn


class PointWise(nn.Module):
    """Two convolutions of width one, and a residual of its own."""

    def __init__(self, hidden_units, dropout_rate):
        super().__init__()
        self.conv1 = nn.Conv1d(hidden_units, hidden_units, 1)
        self.conv2 = nn.Conv1d(hidden_units, hidden_units, 1)
        self.drop = nn.Dropout(dropout_rate)

    def forward(self, seqs):
        out = seqs.mT  # channels before length
        out = torch.relu(self.drop(self.conv1(out)))
        out = self.drop(self.conv2(out))
        return seqs + out.mT


class ShopperBlock(nn.Module):
    def __init__(self, hidden_units, num_heads, dropout_rate):
        super().__init__()
        self.attn_norm = nn.LayerNorm(hidden_units, eps=1e-8)
        self.attn = nn.MultiheadAttention(
            hidden_units, num_heads, dropout_rate
        )
        self.ffn_norm = nn.LayerNorm(hidden_units, eps=1e-8)
        self.ffn = PointWise(hidden_units, dropout_rate)

    @staticmethod
    def wiped(seqs, no_click):
        """Zero where nothing was clicked."""
        return seqs if no_click is None else seqs * ~no_click.unsqueeze(2)

    def forward(self, seqs, no_click=None):
        seqs = self.wiped(seqs, no_click)
        length = seqs.size(1)
        visible = torch.tril(
            torch.ones(length, length, dtype=torch.bool, device=seqs.device)
        )

        seqs = seqs.transpose(0, 1)  # as the library wants it
        queries = self.attn_norm(seqs)
        found, _ = self.attn(queries, seqs, seqs, attn_mask=~visible)
        seqs = queries + found
        seqs = seqs.transpose(0, 1)

        seqs = self.ffn(self.ffn_norm(seqs))
        return self.wiped(seqs, no_click)


PATIENT = ShopperBlock(12, 2, 0.2)
FACTS = {
    "order": "pre",
    "formula": "own",
    "layout": "BND",
    "causal": True,
    "padding": "block",
    "attention": "attn",
    "feed_forward": "ffn",
    "norms": ["attn_norm", "ffn_norm"],
    "n_heads": 2,
    "dropout": 0.2,
}
INPUTS = {"seqs": "b n 12", "no_click?": "padding b n"}
