"""A translator as models are made today; all but x is told by keywords."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def rope(x: Tensor, base: float = 500.0) -> Tensor:
    """Neighbouring features are turned together. x: (batch, heads, n, d)."""
    n, d = x.shape[-2:]
    place = torch.arange(n, device=x.device, dtype=torch.float64)
    pairs = torch.arange(0, d, 2, device=x.device, dtype=torch.float64)
    angle = place[:, None] * base ** (-pairs / d)
    cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    a, b = x[..., 0::2], x[..., 1::2]
    turned = torch.stack((a * cos - b * sin, a * sin + b * cos), dim=-1)
    return turned.flatten(-2)


class GroupedQueries(nn.Module):
    def __init__(self, width, source_width, heads, groups, head_width):
        super().__init__()
        self.heads, self.groups = heads, groups
        self.wq = nn.Linear(width, heads * head_width, bias=False)
        self.wkv = nn.Linear(source_width, 2 * groups * head_width, bias=False)
        self.wo = nn.Linear(heads * head_width, width, bias=False)

    def project(self, x, source):
        q = self.wq(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
        kv = self.wkv(source).unflatten(-1, (2, self.groups, -1))
        k, v = kv.permute(2, 0, 3, 1, 4)
        return q, k, v

    def answer(self, q, k, v, **options):
        y = F.scaled_dot_product_attention(q, k, v, enable_gqa=True, **options)
        return self.wo(y.transpose(1, 2).flatten(2))


class CausalAttention(GroupedQueries):
    def forward(self, x):
        q, k, v = self.project(x, x)
        return self.answer(rope(q), rope(k), v, is_causal=True)


class SourceAttention(GroupedQueries):
    """Nothing is turned: places in two languages have no distance."""

    def forward(self, x, source, real=None):
        q, k, v = self.project(x, source)
        if real is not None:
            real = real[:, None, None, :]
        return self.answer(q, k, v, attn_mask=real)


class SwiGLU(nn.Module):
    def __init__(self, width, inner):
        super().__init__()
        self.up_and_gate = nn.Linear(width, 2 * inner, bias=False)
        self.down = nn.Linear(inner, width, bias=False)

    def forward(self, x):
        up, gate = self.up_and_gate(x).chunk(2, dim=-1)
        return self.down(up * F.silu(gate))


class Seq2SeqLayer(nn.Module):
    def __init__(self, width, source_width, inner, *, heads, groups, rate):
        super().__init__()
        head_width = width // heads
        self.attn = CausalAttention(width, width, heads, groups, head_width)
        self.xattn = SourceAttention(
            width, source_width, heads, groups, head_width
        )
        self.ffn = SwiGLU(width, inner)
        self.pre_attn = nn.RMSNorm(width, eps=1e-6)
        self.pre_xattn = nn.RMSNorm(width, eps=1e-6)
        self.pre_ffn = nn.RMSNorm(width, eps=1e-6)
        self.drop = nn.Dropout(rate)

    def forward(self, x, *, source, source_real=None):
        h = x + self.drop(self.attn(self.pre_attn(x)))
        seen = self.xattn(self.pre_xattn(h), source, real=source_real)
        h = h + self.drop(seen)
        return h + self.drop(self.ffn(self.pre_ffn(h)))


PATIENT = Seq2SeqLayer(16, 9, 22, heads=4, groups=2, rate=0.1)
FACTS = {
    "order": "pre",
    "layout": "BND",
    "padding": "keep",
    "positions": "rotary",
    "self_attention": "attn",
    "cross_attention": "xattn",
    "feed_forward": "ffn",
    "norms": ["pre_attn", "pre_xattn", "pre_ffn"],
    "n_heads": 4,
    "dropout": 0.1,
}
INPUTS = {"x": "b n 16", "source": "b m 9", "source_real?": "real b m"}
