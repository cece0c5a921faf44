"""Blocks with learnt positions; every past is one tensor of two halves."""

import math
from types import SimpleNamespace

import torch
import torch.nn.functional as F
from torch import nn


class Attention(nn.Module):
    def __init__(self, hparams):
        super().__init__()
        self.n_head = hparams.n_head
        self.c_attn = nn.Linear(hparams.n_embd, 3 * hparams.n_embd)
        self.c_proj = nn.Linear(hparams.n_embd, hparams.n_embd)

    def forward(self, x, past):
        b, t, c = x.shape
        qkv = self.c_attn(x).view(b, t, 3, self.n_head, c // self.n_head)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        present = torch.stack([k, v], dim=1)
        if past is not None:
            present = torch.cat([past, present], dim=-2)
        k, v = present.unbind(dim=1)
        w = q @ k.transpose(-1, -2) / math.sqrt(q.size(-1))
        n_dst, n_src = w.shape[-2:]
        i = torch.arange(n_dst, device=w.device)[:, None]
        j = torch.arange(n_src, device=w.device)
        m = i >= j - n_src + n_dst
        w = w.masked_fill(m.logical_not(), -torch.inf).softmax(dim=-1)
        a = (w @ v).transpose(1, 2).reshape(b, t, c)
        return self.c_proj(a), present


class Block(nn.Module):
    def __init__(self, hparams):
        super().__init__()
        nx = hparams.n_embd
        self.ln_1 = nn.LayerNorm(nx)
        self.attn = Attention(hparams)
        self.ln_2 = nn.LayerNorm(nx)
        self.c_fc = nn.Linear(nx, 4 * nx)
        self.c_proj = nn.Linear(4 * nx, nx)

    def forward(self, x, past):
        a, present = self.attn(self.ln_1(x), past)
        x = x + a
        m = self.c_proj(F.gelu(self.c_fc(self.ln_2(x)), approximate="tanh"))
        return x + m, present


class Transformer(nn.Module):
    def __init__(self, hparams):
        super().__init__()
        self.wpe = nn.Embedding(hparams.n_ctx, hparams.n_embd)
        self.h = nn.ModuleList(
            [Block(hparams) for _ in range(hparams.n_layer)]
        )
        self.ln_f = nn.LayerNorm(hparams.n_embd)

    def forward(self, x, past=None):
        if past is None:
            past_length, past = 0, [None] * len(self.h)
        else:
            past_length = past[0].size(-2)
        end = past_length + x.size(1)
        position_ids = torch.arange(past_length, end, device=x.device)
        h = x + self.wpe(position_ids)
        presents = []
        for block, layer_past in zip(self.h, past, strict=True):
            h, present = block(h, layer_past)
            presents.append(present)
        return self.ln_f(h), presents


PATIENT = Transformer(SimpleNamespace(n_ctx=32, n_embd=8, n_head=2, n_layer=2))
FACTS = {
    "d_model": 8,
    "longest": 32,
    "call": lambda model, x, cache: model(x, past=cache),
}
INPUTS = {"x": "b n 8"}
