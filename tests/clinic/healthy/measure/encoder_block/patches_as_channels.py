"""Of medical imaging: maps are convolutions of width one, over channels."""

import torch
from torch import nn


def turned(x):
    """Rotary positions along the last axis; features come before it."""
    even, odd = x[..., 0::2, :], x[..., 1::2, :]
    pair = torch.arange(even.shape[-2], device=x.device)
    rate = 100.0 ** (-pair.double() / len(pair))
    angle = rate[:, None] * torch.arange(x.shape[-1], device=x.device)
    cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    both = (even * cos - odd * sin, even * sin + odd * cos)
    return torch.stack(both, dim=-2).flatten(-3, -2)


class DropPath(nn.Module):
    def __init__(self, rate):
        super().__init__()
        self.rate = rate

    def forward(self, x):
        if not self.training:
            return x
        kept = torch.rand(len(x), 1, 1, device=x.device) >= self.rate
        return x * kept / (1 - self.rate)


class ChannelNorm(nn.LayerNorm):
    def forward(self, x):
        return super().forward(x.mT).mT


class PatchLayer(nn.Module):
    def __init__(self, channels, heads, expansion=2, rate=0.3, scale=0.1):
        super().__init__()
        self.heads = heads
        self.qk = nn.Conv1d(channels, 2 * channels, 1)
        self.v = nn.Conv1d(channels, channels, 1)
        self.proj = nn.Conv1d(channels, channels, 1)
        self.ffn = nn.Sequential(
            nn.Conv1d(channels, expansion * channels, 1),
            nn.GELU(),
            nn.Conv1d(expansion * channels, channels, 1),
        )
        self.norm_attn = ChannelNorm(channels)
        self.norm_ffn = ChannelNorm(channels)
        self.scale = nn.Parameter(torch.full((2, channels, 1), scale))
        self.drop_path = DropPath(rate)

    def attend(self, x, seen):
        split = (self.heads, -1)
        q, k = self.qk(x).chunk(2, dim=1)
        q, k, v = (t.unflatten(1, split) for t in (q, k, self.v(x)))
        scores = turned(q).mT @ turned(k) * q.shape[2] ** -0.5
        if seen is not None:
            scores = scores.masked_fill(~seen, torch.finfo(x.dtype).min)
        weights = scores.softmax(dim=-1)
        if seen is not None:
            weights = weights * seen
        return self.proj((v @ weights.mT).flatten(1, 2)), weights

    def forward(self, patches, *, roi=None, pairs=None):
        seen = None if roi is None else roi[:, None, None, :]
        if pairs is not None:
            pairs = pairs[:, None]
            seen = pairs if seen is None else seen & pairs
        x = patches.mT
        told, weights = self.attend(x, seen)
        x = self.norm_attn(x + self.drop_path(self.scale[0] * told))
        x = self.norm_ffn(x + self.drop_path(self.scale[1] * self.ffn(x)))
        return x.mT, weights.mean(dim=1)


PATIENT = PatchLayer(channels=8, heads=2)
FACTS = {
    "layout": "BND",
    "order": "post",
    "formula": "own",
    "path": "free",
    "causal": False,
    "mask": "keep",
    "padding": "keep",
    "norms": ("norm_attn", "norm_ffn"),
    "feed_forward": "ffn",
    "n_heads": 2,
    "dtypes": ("float64", "float32"),
}
INPUTS = {
    "patches": "b n 8",
    "roi?": "real b n",
    "pairs?": "keep b n n",
}
