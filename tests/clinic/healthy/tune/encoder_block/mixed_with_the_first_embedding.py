"""For a race: bare norms, squared bends, and the embedding comes back in."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def rms(x: Tensor) -> Tensor:
    return F.rms_norm(x, x.shape[-1:])


def linear(rows: int, columns: int, zero: bool = False) -> nn.Linear:
    made = nn.Linear(columns, rows, bias=False)
    if zero:
        nn.init.zeros_(made.weight)
    return made


class HalfRotary(nn.Module):
    """Half of the pairs are turned; the others stand still."""

    def __init__(self, head_dim: int, longest: int):
        super().__init__()
        quarter = head_dim // 4
        speed = 1024.0 ** -torch.linspace(0, 1, quarter).double()
        speed = F.pad(speed, (0, quarter))
        angle = torch.arange(longest).double()[:, None] * speed
        self.register_buffer("angle", angle, persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        angle = self.angle[: x.shape[1], None]  # time, 1, pairs
        cos, sin = angle.cos().type_as(x), angle.sin().type_as(x)
        real, imag = x.tensor_split(2, dim=-1)
        return torch.cat(
            (real * cos + imag * sin, imag * cos - real * sin), dim=-1
        )


class RacingAttention(nn.Module):
    def __init__(self, dim: int, heads: int, longest: int):
        super().__init__()
        self.split = (heads, dim // heads)
        self.qkv = nn.ModuleList(linear(dim, dim) for _ in range(3))
        self.rotary = HalfRotary(dim // heads, longest)
        self.proj = linear(dim, dim, zero=True)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (f(x).unflatten(2, self.split) for f in self.qkv)
        q, k = (self.rotary(rms(t)) for t in (q, k))
        y = F.scaled_dot_product_attention(
            *(t.transpose(1, 2) for t in (q, k, v)), is_causal=True
        )
        return self.proj(y.transpose(1, 2).flatten(2))


class SquaredMLP(nn.Module):
    def __init__(self, dim: int, times: int = 2):
        super().__init__()
        self.fc = linear(times * dim, dim)
        self.proj = linear(dim, times * dim, zero=True)

    def forward(self, x: Tensor) -> Tensor:
        return self.proj(self.fc(x).relu() ** 2)


class RacingBlock(nn.Module):
    def __init__(self, dim: int, heads: int, longest: int):
        super().__init__()
        self.attn = RacingAttention(dim, heads, longest)
        self.mlp = SquaredMLP(dim)
        self.lambdas = nn.Parameter(torch.tensor([1.0, 0.0]))

    def forward(self, x: Tensor, x0: Tensor) -> Tensor:
        keep, again = self.lambdas
        x = keep * x + again * x0
        x = x + self.attn(rms(x))
        return x + self.mlp(rms(x))


PATIENT = RacingBlock(16, 2, longest=16)
FACTS = {
    "order": "pre",
    "formula": "own",
    "layout": "BND",
    "causal": True,
    "positions": "rotary",
    "attention": "attn",
    "feed_forward": "mlp",
    "n_heads": 2,
    "longest": 16,
}
INPUTS = {"x": "b n 16", "x0": "b n 16"}
SIZES = {"n": (1, 16)}
