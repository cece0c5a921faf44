"""GPT-NeoX's way: cosines and sines, made anew when a text is longer."""

import torch
import torch.nn as nn


class RotaryEmbedding(nn.Module):
    def __init__(self, dim, base=10000):
        super().__init__()
        inv_freq = 1.0 / (base ** (torch.arange(0, dim, 2).double() / dim))
        self.register_buffer("inv_freq", inv_freq)
        self.seq_len_cached = 0
        self.cos_cached = None
        self.sin_cached = None

    def _update(self, seq_len, x):
        stale = (
            self.cos_cached is None
            or self.cos_cached.shape[-2] < seq_len
            or self.cos_cached.dtype != x.dtype
            or self.cos_cached.device != x.device
        )
        if stale:
            if seq_len > self.seq_len_cached:
                self.seq_len_cached = max(seq_len, 2 * self.seq_len_cached)
            t = torch.arange(self.seq_len_cached, device=x.device)
            freqs = torch.einsum("i,j->ij", t.to(self.inv_freq), self.inv_freq)
            emb = torch.cat((freqs, freqs), dim=-1).to(x.device)
            self.cos_cached = emb.cos().to(x.dtype)[None, None, :, :]
            self.sin_cached = emb.sin().to(x.dtype)[None, None, :, :]

    @staticmethod
    def rotate_half(x):
        x1 = x[..., : x.shape[-1] // 2]
        x2 = x[..., x.shape[-1] // 2 :]
        return torch.cat((-x2, x1), dim=-1)

    def forward(self, query_layer, layer_past_length=0):
        seq_len = query_layer.shape[-2] + layer_past_length
        self._update(seq_len, query_layer)
        cos = self.cos_cached[..., layer_past_length:seq_len, :]
        sin = self.sin_cached[..., layer_past_length:seq_len, :]
        return query_layer * cos + self.rotate_half(query_layer) * sin


PATIENT = RotaryEmbedding(10)
FACTS = {
    "pairs": "halves",
    "layout": "BHND",
    "width": 10,
    "dtypes": ("float64", "float32"),
}
INPUTS = {"query_layer": "b h n 10", "layer_past_length": "int s"}
SIZES = {"s": (0, 9)}
