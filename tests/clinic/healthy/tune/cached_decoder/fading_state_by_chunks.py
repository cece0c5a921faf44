"""Retention: within a chunk all at once, the past a matrix that fades."""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class RetentionState(NamedTuple):
    kv: Tensor  # (b, h, d_k, d_v): all keys and values, the older the less


class MultiScaleRetention(nn.Module):
    def __init__(self, embed_dim: int, num_heads: int):
        super().__init__()
        self.num_heads = num_heads
        self.key_dim = embed_dim // num_heads
        self.q_proj = nn.Linear(embed_dim, embed_dim, bias=False)
        self.k_proj = nn.Linear(embed_dim, embed_dim, bias=False)
        self.v_proj = nn.Linear(embed_dim, embed_dim, bias=False)
        self.g_proj = nn.Linear(embed_dim, embed_dim, bias=False)
        self.out_proj = nn.Linear(embed_dim, embed_dim, bias=False)
        self.group_norm = nn.LayerNorm(
            self.key_dim, eps=1e-5, elementwise_affine=False
        )
        steps = torch.arange(num_heads, dtype=torch.float64)
        self.register_buffer("gamma", 1 - 2.0 ** (-2 - steps))

    def decay(self, n: int, dtype: torch.dtype):
        """How much is left: between tokens, of the state, at the end."""
        gamma = self.gamma.to(dtype)[:, None]
        place = torch.arange(n, device=gamma.device)
        far = (place[:, None] - place[None, :]).to(dtype)
        inner = gamma[:, None] ** far.clamp(min=0)
        inner = torch.where(far >= 0, inner, 0.0)
        cross = gamma ** (place + 1)
        rest = gamma ** (n - 1 - place)
        return inner, cross, rest

    def forward(self, x: Tensor, state: RetentionState | None = None):
        b, n, c = x.shape
        shape = (b, n, self.num_heads, self.key_dim)
        q = self.q_proj(x).view(shape).transpose(1, 2)
        k = self.k_proj(x).view(shape).transpose(1, 2) * self.key_dim**-0.5
        v = self.v_proj(x).view(shape).transpose(1, 2)
        inner, cross, rest = self.decay(n, x.dtype)

        qk = (q @ k.transpose(-1, -2)) * inner
        out = qk @ v
        kv = (k * rest[..., None]).transpose(-1, -2) @ v
        if state is not None:
            out = out + (q @ state.kv) * cross[..., None]
            kv = kv + state.kv * cross[:, -1:, None]

        out = self.group_norm(out).transpose(1, 2).reshape(b, n, c)
        gate = F.silu(self.g_proj(x))
        return self.out_proj(gate * out), RetentionState(kv)


PATIENT = MultiScaleRetention(12, 3)
FACTS = {
    "d_model": 12,
    "formula": "own",
    "call": lambda layer, x, cache: layer(x, state=cache),
    "dtypes": ("float64", "float32"),
}
INPUTS = {"x": "b n 12"}
LOUDEST = 4
