"""Of medical imaging: slides with unlike numbers of patches, one baddbmm."""

import torch
from torch import nn
from torch.nn import functional as F


class Lambda(nn.Module):
    def __init__(self, fn):
        super().__init__()
        self.fn = fn

    def forward(self, x):
        return self.fn(x)


class ScaleNorm(nn.Module):
    """Every token on a sphere, whose radius is learnt."""

    def __init__(self, dim, eps=1e-5):
        super().__init__()
        self.g = nn.Parameter(torch.tensor(float(dim) ** 0.5))
        self.eps = eps

    def forward(self, x):
        length = torch.linalg.vector_norm(x, dim=-1, keepdim=True)
        return self.g * x / length.clamp(min=self.eps)


def geglu(x):
    value, gate = x.chunk(2, dim=-1)
    return value * F.gelu(gate)


class PatchAttention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x, lengths=None):
        B, N, C = x.shape
        qkv = self.qkv(x).view(B, N, 3, self.heads, C // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).flatten(1, 2)
        absent = x.new_zeros(B, 1, N)
        if lengths is not None:
            number = torch.arange(N, device=x.device)
            beyond = number >= lengths[:, None, None]
            absent = absent.masked_fill(beyond, float("-inf"))
        absent = absent.repeat_interleave(self.heads, dim=0)
        root = (C // self.heads) ** -0.5
        logits = torch.baddbmm(absent, q, k.mT, alpha=root)
        heard = torch.bmm(logits.softmax(-1), v).view(B, self.heads, N, -1)
        return self.proj(heard.transpose(1, 2).reshape(B, N, C))


class SlideLayer(nn.Module):
    def __init__(self, dim, heads=2, hidden=10, drop=0.25, eps=1e-5):
        super().__init__()
        self.norm1, self.norm2 = ScaleNorm(dim, eps), ScaleNorm(dim, eps)
        self.attn = PatchAttention(dim, heads)
        self.mlp = nn.Sequential(
            nn.Linear(dim, 2 * hidden), Lambda(geglu), nn.Linear(hidden, dim)
        )
        self.drop = nn.Dropout(drop)

    def forward(self, patches, **kwargs):
        y = self.attn(self.norm1(patches), kwargs.get("lengths"))
        patches = patches + self.drop(y)
        return patches + self.drop(self.mlp(self.norm2(patches)))


PATIENT = SlideLayer(dim=12).eval()
FACTS = {
    "layout": "BND",
    "order": "pre",
    "attention": "attn",
    "norms": ["norm1", "norm2"],
    "feed_forward": "mlp",
    "dropout": 0.25,
    "lengths": "how many patches a slide has",
    "dtypes": ("float64", "float32", "bfloat16"),
}
INPUTS = {"patches": "b n 12", "lengths?": "lengths b n"}
