"""An embedding whose rows are multiplied by the width to the power -1/2."""

import torch
from torch import nn


class AbsolutePositionalEmbedding(nn.Module):
    def __init__(self, dim, max_seq_len):
        super().__init__()
        self.scale = dim**-0.5
        self.max_seq_len = max_seq_len
        self.emb = nn.Embedding(max_seq_len, dim)

    def forward(self, x, pos=None):
        seq_len, device = x.shape[1], x.device
        assert seq_len <= self.max_seq_len, (
            f"{seq_len} tokens, but positions for {self.max_seq_len} only"
        )
        if pos is None:
            pos = torch.arange(seq_len, device=device)
        pos_emb = self.emb(pos) * self.scale
        return x + pos_emb


PATIENT = AbsolutePositionalEmbedding(10, 20)
FACTS = {
    "table": PATIENT.emb.weight.detach() * PATIENT.scale,
    "layout": "BND",
    "dtypes": ("float64", "float32"),
}
INPUTS = {"x": "b n 10"}
SIZES = {"n": (1, 20)}
