"""A forecaster's: time first, norms of one number, gaps not observed."""

import torch
from torch import nn
from torch.nn import functional as F


class LengthNorm(nn.Module):
    """One learnt length for all series."""

    def __init__(self, width, floor=1e-5):
        super().__init__()
        self.length = nn.Parameter(torch.tensor(float(width) ** 0.5))
        self.floor = floor

    def forward(self, series):
        norm = torch.linalg.vector_norm(series, dim=-1, keepdim=True)
        return series * (self.length / norm.clamp_min(self.floor))


class Mixer(nn.Module):
    """Queries and keys know their neighbours by a convolution in time."""

    def __init__(self, width, heads):
        super().__init__()
        self.near = nn.Conv1d(width, width, 3, padding=1, groups=width)
        self.mha = nn.MultiheadAttention(width, heads)

    def forward(self, series, observed=None):
        told = series.permute(1, 2, 0)
        if observed is not None:
            told = told * observed[:, None, :]
        placed = series + self.near(told).permute(2, 0, 1)
        gaps = None if observed is None else ~observed
        return self.mha(placed, placed, series, key_padding_mask=gaps)


class Gate(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.both = nn.Linear(width, 2 * hidden, bias=False)
        self.down = nn.Linear(hidden, width, bias=False)

    def forward(self, series):
        value, gate = self.both(series).chunk(2, dim=-1)
        return self.down(F.silu(gate) * value)


class MixerLayer(nn.Module):
    def __init__(self, width, heads, hidden, layer_idx=0):
        super().__init__()
        self.norm_mix = LengthNorm(width)
        self.mixer = Mixer(width, heads)
        self.norm_gate = LengthNorm(width)
        self.gate = Gate(width, hidden)
        nn.init.normal_(self.gate.down.weight, std=0.02 / (layer_idx + 1))

    def forward(self, series, observed=None):
        told, share = self.mixer(self.norm_mix(series), observed)
        series = series + told
        return series + self.gate(self.norm_gate(series)), share


PATIENT = MixerLayer(width=12, heads=4, hidden=20, layer_idx=2)
FACTS = {
    "layout": "NBD",
    "order": "pre",
    "attention": "mixer",
    "norms": ("norm_mix", "norm_gate"),
    "feed_forward": "gate",
    "padding": "keep",
    "dtypes": ("float64", "float32"),
}
INPUTS = {"series": "n b 12", "observed?": "real b n"}
