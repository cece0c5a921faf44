"""A norm goes in and a norm comes out of each of three; a loop runs them."""

import torch
from torch import nn


class HeadsAsAxis(nn.Module):
    """Maps are three-axed: heads, in, out."""

    def __init__(self, heads, d_x, d_y, d_head, look_ahead):
        super().__init__()
        self.look_ahead = look_ahead
        scale = d_head**-0.25  # a half of it on each side
        self.scale = scale
        self.Q = nn.Parameter(torch.randn(heads, d_x, d_head) * d_x**-0.5)
        self.K = nn.Parameter(torch.randn(heads, d_y, d_head) * d_y**-0.5)
        self.V = nn.Parameter(torch.randn(heads, d_y, d_head) * d_y**-0.5)
        self.O = nn.Parameter(torch.randn(heads, d_head, d_x) * d_x**-0.5)

    def forward(self, x, y=None, mask=None):
        y = x if y is None else y
        q = torch.einsum("bnx,hxd->bhnd", x, self.Q) * self.scale
        k = torch.einsum("bmy,hyd->bhmd", y, self.K) * self.scale
        v = torch.einsum("bmy,hyd->bhmd", y, self.V)
        scores = torch.einsum("bhnd,bhmd->bhnm", q, k)
        if not self.look_ahead:
            mask = scores.new_ones(scores.shape[-2:]).tril().bool()
        if mask is not None:
            scores = scores.where(mask, -torch.inf)
        w = scores.softmax(-1)
        return torch.einsum("bhnm,bhmd,hdx->bnx", w, v, self.O)


class Sandwich(nn.Module):
    def __init__(self, d, filling):
        super().__init__()
        self.before = nn.LayerNorm(d)
        self.filling = filling
        self.behind = nn.LayerNorm(d)

    def forward(self, x, *more):
        return x + self.behind(self.filling(self.before(x), *more))


class SandwichDecoderBlock(nn.Module):
    def __init__(self, d, heads, d_head, hidden):
        super().__init__()
        self.own = Sandwich(d, HeadsAsAxis(heads, d, d, d_head, False))
        self.memory = Sandwich(d, HeadsAsAxis(heads, d, d, d_head, True))
        self.think = Sandwich(
            d,
            nn.Sequential(
                nn.Linear(d, hidden), nn.Softplus(), nn.Linear(hidden, d)
            ),
        )

    def forward(self, x, memory, memory_mask=None):
        x = self.own(x)
        x = self.memory(x, memory, memory_mask)
        return self.think(x)


PATIENT = SandwichDecoderBlock(10, 3, 4, 14)
FACTS = {
    "order": "sandwich",
    "layout": "BND",
    "mask": "keep",
    "self_attention": "own.filling",
    "cross_attention": "memory.filling",
    "feed_forward": "think.filling",
    "norms": [
        "own.before",
        "own.behind",
        "memory.before",
        "memory.behind",
        "think.before",
        "think.behind",
    ],
    "n_heads": 3,
}
INPUTS = {"x": "b n 10", "memory": "b m 10", "memory_mask?": "keep n m"}
