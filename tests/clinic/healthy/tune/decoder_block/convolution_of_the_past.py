"""What asks and answers has passed a causal convolution of three tokens."""

import torch
import torch.nn.functional as F
from torch import nn


def heads(t, h):
    return t.reshape(*t.shape[:2], h, -1).permute(0, 2, 1, 3)


class ShortConv(nn.Conv1d):
    def __init__(self, width, reach=3):
        super().__init__(width, width, reach, groups=width)
        self.reach = reach

    def forward(self, x):
        x = F.pad(x.mT, (self.reach - 1, 0))
        return super().forward(x).mT


class PrimedAttention(nn.Module):
    """Queries, keys and values have seen a few tokens before."""

    def __init__(self, width, h):
        super().__init__()
        self.h = h
        self.qkv = nn.Linear(width, 3 * width)
        self.conv = ShortConv(3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        q, k, v = self.conv(self.qkv(x)).chunk(3, -1)
        q, k, v = (heads(t, self.h) for t in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.permute(0, 2, 1, 3).flatten(2))


class Look(nn.Module):
    def __init__(self, width, width_memory, h):
        super().__init__()
        self.h = h
        self.q = nn.Linear(width, width)
        self.k = nn.Linear(width_memory, width)
        self.v = nn.Linear(width_memory, width)
        self.out = nn.Linear(width, width)

    def forward(self, x, memory, keep=None):
        q, k, v = (
            heads(f(t), self.h)
            for f, t in ((self.q, x), (self.k, memory), (self.v, memory))
        )
        bias = None
        if keep is not None:
            bias = torch.zeros(keep.shape, dtype=x.dtype, device=x.device)
            bias = bias.masked_fill(~keep, -torch.inf)[:, None, None]
        y = F.scaled_dot_product_attention(q, k, v, bias)
        return self.out(y.permute(0, 2, 1, 3).flatten(2))


class SquaredReLU(nn.Module):
    def forward(self, x):
        return x.relu().square()


class PrimerBlock(nn.Module):
    def __init__(self, width, width_memory, h, inner):
        super().__init__()
        self.ln = nn.ParameterDict()  # gains only, looked up by name
        for name in ("past", "look", "net"):
            self.ln[name] = nn.Parameter(torch.ones(width))
        self.past = PrimedAttention(width, h)
        self.look = Look(width, width_memory, h)
        self.net = nn.Sequential(
            nn.Linear(width, inner), SquaredReLU(), nn.Linear(inner, width)
        )

    def normed(self, name, x):
        return F.layer_norm(x, x.shape[-1:], self.ln[name])

    def forward(self, x, memory, memory_keep=None):
        x = x + self.past(self.normed("past", x))
        x = x + self.look(self.normed("look", x), memory, memory_keep)
        return x + self.net(self.normed("net", x))


PATIENT = PrimerBlock(12, 8, 2, 15)
FACTS = {
    "order": "pre",
    "layout": "BND",
    "padding": "keep",
    "self_attention": "past",
    "cross_attention": "look",
    "feed_forward": "net",
}
INPUTS = {"x": "b n 12", "memory": "b m 8", "memory_keep?": "real b m"}
