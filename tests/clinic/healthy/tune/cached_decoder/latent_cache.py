"""Only a narrow latent of each token is kept; keys are made of it anew."""

import torch
from torch import nn


class LatentAttention(nn.Module):
    def __init__(self, dim, n_heads, kv_lora_rank, qk_dim, v_dim):
        super().__init__()
        self.n_heads = n_heads
        self.qk_head_dim = qk_dim
        self.v_head_dim = v_dim
        self.softmax_scale = qk_dim**-0.5
        self.wq = nn.Linear(dim, n_heads * qk_dim, bias=False)
        self.wkv_a = nn.Linear(dim, kv_lora_rank, bias=False)
        self.kv_norm = nn.RMSNorm(kv_lora_rank, eps=1e-6)
        self.wkv_b = nn.Linear(
            kv_lora_rank, n_heads * (qk_dim + v_dim), bias=False
        )
        self.wo = nn.Linear(n_heads * v_dim, dim, bias=False)

    def forward(self, x, kv_cache=None):
        bsz, seqlen, _ = x.size()
        latent = self.kv_norm(self.wkv_a(x))
        if kv_cache is not None:
            latent = torch.cat((kv_cache, latent), dim=1)
        start_pos = latent.size(1) - seqlen

        q = self.wq(x).view(bsz, seqlen, self.n_heads, self.qk_head_dim)
        kv = self.wkv_b(latent).view(bsz, latent.size(1), self.n_heads, -1)
        k, v = torch.split(kv, [self.qk_head_dim, self.v_head_dim], dim=-1)

        scores = torch.einsum("bshd,bthd->bsht", q, k) * self.softmax_scale
        mask = torch.full(
            (seqlen, latent.size(1)), float("-inf"), device=x.device
        ).triu_(start_pos + 1)
        scores = scores + mask.to(scores.dtype)[None, :, None, :]
        scores = scores.softmax(dim=-1)
        out = torch.einsum("bsht,bthd->bshd", scores, v)
        return self.wo(out.flatten(2)), latent


PATIENT = LatentAttention(10, n_heads=3, kv_lora_rank=4, qk_dim=5, v_dim=3)
FACTS = {
    "d_model": 10,
    "call": lambda mla, x, cache: mla(x, kv_cache=cache),
}
INPUTS = {"x": "b n 10"}
