"""Of meshes: vertices are written one by one, with a cloud of points read."""

import torch
from torch import nn
from torch.nn import functional as F


class ChannelNorm(nn.Module):
    def __init__(self, channels, eps=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(channels))
        self.bias = nn.Parameter(torch.zeros(channels))
        self.eps = eps

    def forward(self, x):
        var, mean = torch.var_mean(x, dim=2, correction=0, keepdim=True)
        return (x - mean) / (var + self.eps).sqrt() * self.weight + self.bias


def rotate(x, base):
    """x: (batch, heads, vertices, width); neighbours make a pair."""
    n, width = x.shape[2:]
    pair = torch.arange(0, width, 2, dtype=torch.float64, device=x.device)
    vertex = torch.arange(n, dtype=torch.float64, device=x.device)
    angle = vertex[:, None] * base ** (-pair / width)
    cos, sin = angle.cos().to(x), angle.sin().to(x)
    a, b = x[..., 0::2], x[..., 1::2]
    turned = torch.stack((a * cos - b * sin, a * sin + b * cos), dim=-1)
    return turned.flatten(-2)


class PackedAttention(nn.Module):
    """One parameter for all that comes in; what is asked may be another."""

    def __init__(self, dim, heads, base=None):
        super().__init__()
        self.heads, self.base = heads, base
        self.in_weight = nn.Parameter(torch.randn(3, dim, dim) / dim**0.5)
        self.out = nn.Linear(dim, dim)

    def forward(self, x, source, hidden=None):
        given = (x, source, source)
        q, k, v = (
            F.linear(t, w).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for t, w in zip(given, self.in_weight, strict=True)
        )
        if self.base is not None:
            q, k = rotate(q, self.base), rotate(k, self.base)
        logits = q @ k.mT / q.shape[-1] ** 0.5
        if hidden is not None:
            logits = logits.masked_fill(hidden, torch.finfo(logits.dtype).min)
        return self.out((logits.softmax(-1) @ v).transpose(1, 2).flatten(2))


class Pointwise(nn.Sequential):
    def forward(self, x):
        return super().forward(x.mT).mT


class VertexBlock(nn.Module):
    def __init__(self, dim, heads, *, expand=2, base=500.0):
        super().__init__()
        self.norm_vertex = ChannelNorm(dim)
        self.vertex = PackedAttention(dim, heads, base)
        self.norm_cloud = ChannelNorm(dim)
        self.read_cloud = PackedAttention(dim, heads)
        self.norm_mlp = ChannelNorm(dim)
        self.mlp = Pointwise(
            nn.Conv1d(dim, expand * dim, 1),
            nn.ReLU(),
            nn.Conv1d(expand * dim, dim, 1),
        )

    def forward(self, vertices, cloud, *, cloud_padding=None):
        n = vertices.shape[1]
        later = vertices.new_ones(n, n).triu(1).bool()
        if cloud_padding is not None:
            cloud_padding = cloud_padding[:, None, None, :]
        x = self.norm_vertex(vertices)
        vertices = vertices + self.vertex(x, x, later)
        x = self.norm_cloud(vertices)
        vertices = vertices + self.read_cloud(x, cloud, cloud_padding)
        return vertices + self.mlp(self.norm_mlp(vertices))


PATIENT = VertexBlock(dim=8, heads=2)
FACTS = {
    "layout": "BND",
    "order": "pre",
    "self_attention": "vertex",
    "cross_attention": "read_cloud",
    "norms": ["norm_vertex", "norm_cloud", "norm_mlp"],
    "feed_forward": "mlp",
    "padding": "block",
    "inside": False,
    "dtypes": ("float64", "float32", "bfloat16"),
}
INPUTS = {
    "vertices": "b n 8",
    "cloud": "b m 8",
    "cloud_padding?": "padding b m",
}
