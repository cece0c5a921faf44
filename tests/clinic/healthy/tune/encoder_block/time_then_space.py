"""Films: a patch sees itself at other times, then others of its picture."""

import torch.nn as nn


class DropPath(nn.Module):
    """Now and then a whole film goes without a branch."""

    def __init__(self, rate):
        super().__init__()
        self.rate = rate

    def forward(self, branch):
        if not self.training:
            return branch
        stays = branch.new_empty(len(branch), 1, 1).bernoulli_(1 - self.rate)
        return branch * stays / (1 - self.rate)


class Attention(nn.Module):
    def __init__(self, dim, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.scale = (dim // num_heads) ** -0.5
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x):
        B, N, C = x.shape
        qkv = self.qkv(x).reshape(B, N, 3, self.num_heads, -1)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        attn = (q * self.scale) @ k.transpose(-2, -1)
        x = (attn.softmax(dim=-1) @ v).transpose(1, 2)
        return self.proj(x.reshape(B, N, C))


class SpaceTimeBlock(nn.Module):
    def __init__(self, dim, num_heads, frames, mlp_dim, drop_path=0.1):
        super().__init__()
        self.frames = frames
        self.time_norm = nn.LayerNorm(dim)
        self.time_attn = Attention(dim, num_heads)
        self.time_fc = nn.Linear(dim, dim)
        self.norm1 = nn.LayerNorm(dim)
        self.attn = Attention(dim, num_heads)
        self.norm2 = nn.LayerNorm(dim)
        self.mlp = nn.Sequential(
            nn.Linear(dim, mlp_dim), nn.GELU(), nn.Linear(mlp_dim, dim)
        )
        self.drop_path = DropPath(drop_path)

    def forward(self, x):
        # x: (B, T * P, D), picture after picture
        B, N, D = x.shape
        T, P = self.frames, N // self.frames

        # each patch through time
        h = self.time_norm(x).view(B, T, P, D).transpose(1, 2)
        h = self.time_attn(h.reshape(B * P, T, D))
        h = h.view(B, P, T, D).transpose(1, 2).reshape(B, N, D)
        x = x + self.drop_path(self.time_fc(h))

        # each picture by itself
        h = self.attn(self.norm1(x).view(B * T, P, D))
        x = x + self.drop_path(h.view(B, N, D))

        x = x + self.drop_path(self.mlp(self.norm2(x)))
        return x


PATIENT = SpaceTimeBlock(12, 3, frames=2, mlp_dim=18)
FACTS = {
    "order": "pre",
    "formula": "own",
    "layout": "BND",
    "causal": False,
    "attention": "attn",
    "feed_forward": "mlp",
    "norms": ["time_norm", "norm1", "norm2"],
    "n_heads": 3,
    "frames": 2,
    "drop_path": 0.1,
}
INPUTS = {"x": "b 2*n 12"}
