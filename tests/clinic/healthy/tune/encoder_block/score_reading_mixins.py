"""A composer's program: a block inherits all that it can from mixins."""

import torch
from torch import nn
from torch.nn import functional as F


class Norm(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(dim))
        self.beta = nn.Parameter(torch.zeros(dim))

    def forward(self, t):
        var, mean = torch.var_mean(t, dim=-1, correction=0, keepdim=True)
        return (t - mean) * torch.rsqrt(var + 1e-5) * self.gamma + self.beta


class RotaryMixin:
    def rotate(self, t):
        half = t.shape[-1] // 2
        turns = torch.arange(half, dtype=torch.float64, device=t.device)
        beat = torch.arange(t.shape[-2], device=t.device)[:, None]
        angle = beat * 500.0 ** (-turns / half)
        cos, sin = angle.cos().to(t.dtype), angle.sin().to(t.dtype)
        left, right = t[..., :half], t[..., half:]
        return torch.cat(
            (left * cos - right * sin, right * cos + left * sin), dim=-1
        )


class AttendMixin(RotaryMixin):
    def attend(self, t, src_mask, src_key_padding_mask):
        q, k, v = (
            part(t).unflatten(-1, (self.nhead, -1)).transpose(1, 2)
            for part in (self.query, self.key, self.value)
        )
        seen = src_mask
        if src_key_padding_mask is not None:
            real = ~src_key_padding_mask[:, None, None, :]
            seen = real if seen is None else seen & real
        scores = self.rotate(q) @ self.rotate(k).mT / q.shape[-1] ** 0.5
        if seen is not None:
            scores = scores.masked_fill(~seen, torch.finfo(t.dtype).min)
        weights = scores.softmax(dim=-1)
        if seen is not None:
            weights = weights.masked_fill(~seen, 0.0)
        mixed = (weights @ v).transpose(1, 2).flatten(2)
        return self.output(mixed), weights


class FeedMixin:
    def feed(self, t):
        note, loud = self.up(t).chunk(2, dim=-1)
        return self.down(self.dropout(note * F.gelu(loud)))


class ScoreBlock(AttendMixin, FeedMixin, nn.Module):
    def __init__(self, d_model, nhead, d_inner, p=0.1):
        super().__init__()
        self.nhead = nhead
        self.query = nn.Linear(d_model, d_model)
        self.key = nn.Linear(d_model, d_model)
        self.value = nn.Linear(d_model, d_model)
        self.output = nn.Linear(d_model, d_model)
        self.up = nn.Linear(d_model, 2 * d_inner)
        self.down = nn.Linear(d_inner, d_model)
        self.norm1, self.norm2 = Norm(d_model), Norm(d_model)
        self.dropout = nn.Dropout(p)

    def forward(self, src, src_mask=None, src_key_padding_mask=None, **_):
        told, w = self.attend(self.norm1(src), src_mask, src_key_padding_mask)
        src = src + self.dropout(told)
        src = src + self.dropout(self.feed(self.norm2(src)))
        beat = torch.arange(w.shape[-1], device=w.device)
        reach = (beat[:, None] - beat).abs().to(w.dtype)
        return src, (w * reach).sum(dim=-1)  # how far each head looks


PATIENT = ScoreBlock(16, 2, 24)
FACTS = {
    "layout": "BND",
    "order": "pre",
    "formula": "plain",
    "norms": ("norm1", "norm2"),
    "flat_attention": ("query", "key", "value", "output"),
    "n_heads": 2,
    "dropout": 0.1,
    "mask": "keep",
    "padding": "block",
    "extra": "rotary positions",
    "dtypes": ("float64", "float32", "bfloat16"),
}
INPUTS = {
    "src": "b n 16",
    "src_mask?": "keep b 1 n n",
    "src_key_padding_mask?": "padding b n",
}
