"""Keys and values stay in the module; what goes round is where it stands."""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass
class ModelArgs:
    dim: int = 12
    n_layers: int = 2
    n_heads: int = 3
    norm_eps: float = 1e-5
    max_batch_size: int = 16
    max_seq_len: int = 32


def precompute_angles(dim: int, end: int, theta: float = 10000.0):
    freqs = theta ** -(torch.arange(0, dim, 2, dtype=torch.float64) / dim)
    t = torch.arange(end, dtype=torch.float64)
    return torch.outer(t, freqs)


def apply_rotary(x: torch.Tensor, angles: torch.Tensor):
    """x: (bsz, seqlen, heads, head_dim); neighbours are turned."""
    cos, sin = (f(angles).to(x.dtype)[:, None] for f in (torch.cos, torch.sin))
    xr, xi = x.reshape(*x.shape[:-1], -1, 2).unbind(-1)
    return torch.stack(
        (xr * cos - xi * sin, xr * sin + xi * cos), dim=-1
    ).flatten(3)


class Attention(nn.Module):
    def __init__(self, args: ModelArgs):
        super().__init__()
        self.n_heads = args.n_heads
        self.head_dim = args.dim // args.n_heads
        self.wq = nn.Linear(args.dim, args.dim, bias=False)
        self.wk = nn.Linear(args.dim, args.dim, bias=False)
        self.wv = nn.Linear(args.dim, args.dim, bias=False)
        self.wo = nn.Linear(args.dim, args.dim, bias=False)
        room = (args.max_batch_size, args.max_seq_len)
        zeros = torch.zeros(*room, self.n_heads, self.head_dim)
        self.register_buffer("cache_k", zeros, persistent=False)
        self.register_buffer("cache_v", zeros.clone(), persistent=False)

    def forward(self, x, start_pos, angles, mask):
        bsz, seqlen, _ = x.shape
        xq = self.wq(x).view(bsz, seqlen, self.n_heads, self.head_dim)
        xk = self.wk(x).view(bsz, seqlen, self.n_heads, self.head_dim)
        xv = self.wv(x).view(bsz, seqlen, self.n_heads, self.head_dim)
        xq, xk = apply_rotary(xq, angles), apply_rotary(xk, angles)

        self.cache_k[:bsz, start_pos : start_pos + seqlen] = xk
        self.cache_v[:bsz, start_pos : start_pos + seqlen] = xv
        keys = self.cache_k[:bsz, : start_pos + seqlen].transpose(1, 2)
        values = self.cache_v[:bsz, : start_pos + seqlen].transpose(1, 2)

        xq = xq.transpose(1, 2)
        scores = xq @ keys.transpose(2, 3) / math.sqrt(self.head_dim)
        if mask is not None:
            scores = scores + mask
        scores = F.softmax(scores, dim=-1)
        output = (scores @ values).transpose(1, 2).reshape(bsz, seqlen, -1)
        return self.wo(output)


class Transformer(nn.Module):
    def __init__(self, args: ModelArgs):
        super().__init__()
        self.layers = nn.ModuleList(
            Attention(args) for _ in range(args.n_layers)
        )
        self.norms = nn.ModuleList(
            nn.RMSNorm(args.dim, eps=args.norm_eps)
            for _ in range(args.n_layers)
        )
        self.angles = precompute_angles(
            args.dim // args.n_heads, args.max_seq_len
        )

    @torch.no_grad()
    def forward(self, h: torch.Tensor, start_pos: int | None = None):
        start_pos = start_pos or 0
        seqlen = h.shape[1]
        angles = self.angles[start_pos : start_pos + seqlen].to(h.device)
        mask = None
        if seqlen > 1:
            mask = h.new_full((seqlen, seqlen), float("-inf")).triu(1)
            # what is in the cache already is seen by all
            mask = torch.hstack([h.new_zeros(seqlen, start_pos), mask])
        for norm, layer in zip(self.norms, self.layers, strict=True):
            h = h + layer(norm(h), start_pos, angles, mask)
        return h, start_pos + seqlen


PATIENT = Transformer(ModelArgs())
FACTS = {
    "d_model": 12,
    "longest": 32,
    "most_texts": 16,
    "call": lambda model, x, cache: model(x, cache),
}
INPUTS = {"h": "b n 12"}
