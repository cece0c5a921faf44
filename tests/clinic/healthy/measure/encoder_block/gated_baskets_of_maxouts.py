"""For recommendations: a gated unit carries each basket, maxouts feed it."""

import torch
from torch import nn
from torch.nn import functional as F


class GatedCarry(nn.Module):
    """How much of what is new replaces what is there."""

    def __init__(self, dim, start=1.0):
        super().__init__()
        self.old = nn.Linear(dim, 3 * dim)
        self.new = nn.Linear(dim, 3 * dim, bias=False)
        self.start = start

    def forward(self, x, y):
        r_x, z_x, h_x = self.old(x).chunk(3, dim=-1)
        r_y, z_y, h_y = self.new(y).chunk(3, dim=-1)
        reset = torch.sigmoid(r_x + r_y)
        update = torch.sigmoid(z_x + z_y - self.start)
        fresh = torch.tanh(reset * h_x + h_y)
        return torch.lerp(x, fresh, update)


class Baskets(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.maps = nn.ModuleList(nn.Linear(dim, dim) for _ in range(4))

    def cut(self, x):
        n, b, _ = x.shape
        return x.view(n, b, self.heads, -1).permute(1, 2, 0, 3)

    def forward(self, x, bias=None):
        ask, tell, give, join = self.maps
        out = F.scaled_dot_product_attention(
            self.cut(ask(x)), self.cut(tell(x)), self.cut(give(x)), bias
        )
        return join(out.permute(2, 0, 1, 3).reshape(x.shape))


class Maxout(nn.Module):
    def __init__(self, dim, hidden, pieces):
        super().__init__()
        self.pieces = pieces
        self.grow = nn.Linear(dim, hidden * pieces)
        self.shrink = nn.Linear(hidden, dim)

    def forward(self, x, bias=None):
        return self.shrink(
            self.grow(x).unflatten(-1, (-1, self.pieces)).amax(dim=-1)
        )


class BasketLayer(nn.Module):
    def __init__(self, dim, heads, hidden, pieces=3):
        super().__init__()
        self.layers = nn.ModuleList(
            nn.ModuleList([sub, GatedCarry(dim), nn.LayerNorm(dim)])
            for sub in (Baskets(dim, heads), Maxout(dim, hidden, pieces))
        )
        self.apply(self.init_weights)

    @staticmethod
    def init_weights(module):
        if isinstance(module, nn.Linear):
            nn.init.trunc_normal_(module.weight, std=0.02)
            if module.bias is not None:
                nn.init.zeros_(module.bias)

    def forward(self, x, bias=None):
        for sub, carry, norm in self.layers:
            x = norm(carry(x, sub(x, bias)))
        return x


PATIENT = BasketLayer(dim=12, heads=6, hidden=9)
FACTS = {
    "layout": "NBD",
    "order": "post",
    "formula": "own",
    "path": "free",
    "causal": False,
    "attention": "layers.0.0",
    "feed_forward": "layers.1.0",
    "norms": ("layers.0.2", "layers.1.2"),
    "mask": "add",
    "dtypes": ("float64", "float32"),
}
INPUTS = {"x": "n b 12", "bias?": "add n n"}
