"""Maps that hold their matrix the other way round; output and present."""

import math
from types import SimpleNamespace

import torch
from torch import nn


class Conv1D(nn.Module):
    """Like a linear map, its weight (nx, nf) and not (nf, nx)."""

    def __init__(self, nf, nx):
        super().__init__()
        self.nf = nf
        self.weight = nn.Parameter(torch.empty(nx, nf))
        self.bias = nn.Parameter(torch.zeros(nf))
        nn.init.normal_(self.weight, std=0.02)

    def forward(self, x):
        size_out = (*x.size()[:-1], self.nf)
        x = torch.addmm(self.bias, x.reshape(-1, x.size(-1)), self.weight)
        return x.view(size_out)


class Attention(nn.Module):
    def __init__(self, config):
        super().__init__()
        n_state = config.n_embd
        assert n_state % config.n_head == 0
        n_ctx = config.n_positions
        tril = torch.tril(torch.ones(n_ctx, n_ctx, dtype=torch.bool))
        self.register_buffer("bias", tril.view(1, 1, n_ctx, n_ctx))
        self.n_head = config.n_head
        self.c_attn = Conv1D(3 * n_state, n_state)
        self.c_proj = Conv1D(n_state, n_state)
        self.attn_dropout = nn.Dropout(config.attn_pdrop)
        self.resid_dropout = nn.Dropout(config.resid_pdrop)

    def _attn(self, q, k, v):
        w = torch.matmul(q, k)
        w = w / math.sqrt(v.size(-1))
        n_dst, n_src = w.size(-2), w.size(-1)
        b = self.bias[:, :, n_src - n_dst : n_src, :n_src]
        w = torch.where(b, w, torch.finfo(w.dtype).min)
        w = nn.functional.softmax(w, dim=-1)
        return torch.matmul(self.attn_dropout(w), v)

    def split_heads(self, x, k=False):
        x = x.view(*x.size()[:-1], self.n_head, x.size(-1) // self.n_head)
        return x.permute(0, 2, 3, 1) if k else x.permute(0, 2, 1, 3)

    def merge_heads(self, x):
        x = x.permute(0, 2, 1, 3).contiguous()
        return x.view(*x.size()[:-2], x.size(-2) * x.size(-1))

    def forward(self, x):
        query, key, value = self.c_attn(x).split(x.size(2), dim=2)
        query = self.split_heads(query)
        key = self.split_heads(key, k=True)
        value = self.split_heads(value)
        present = torch.stack((key.transpose(-2, -1), value))
        a = self.merge_heads(self._attn(query, key, value))
        a = self.resid_dropout(self.c_proj(a))
        return a, present


PATIENT = Attention(
    SimpleNamespace(
        n_embd=12, n_head=2, n_positions=10, attn_pdrop=0.1, resid_pdrop=0.1
    )
)
FACTS = {
    "layout": "BND",
    "causal": True,
    "packed": "by part",
    "n_heads": 2,
    "longest": 10,
    "dropout": 0.1,
}
INPUTS = {"x": "b n 12"}
SIZES = {"n": (1, 10)}
