"""A tuple per layer; the first half of each head's features is turned."""

import torch
import torch.nn as nn


def fixed_pos_embedding(dim, positions):
    inv_freq = 1.0 / (10000 ** (torch.arange(0, dim, 2).double() / dim))
    sinusoid = torch.einsum("i,j->ij", positions.double(), inv_freq)
    return sinusoid.sin(), sinusoid.cos()


def rotate_every_two(x):
    x = torch.stack((-x[..., 1::2], x[..., ::2]), dim=-1)
    return x.flatten(-2)


def apply_rotary_pos_emb(x, sin, cos):
    sin = sin.repeat_interleave(2, dim=-1)[:, None, :].to(x)
    cos = cos.repeat_interleave(2, dim=-1)[:, None, :].to(x)
    return x * cos + rotate_every_two(x) * sin


class ParallelBlock(nn.Module):
    def __init__(self, n_embd, n_head, rotary_dim):
        super().__init__()
        self.n_head, self.rotary_dim = n_head, rotary_dim
        self.ln_1 = nn.LayerNorm(n_embd)
        self.q_proj = nn.Linear(n_embd, n_embd, bias=False)
        self.k_proj = nn.Linear(n_embd, n_embd, bias=False)
        self.v_proj = nn.Linear(n_embd, n_embd, bias=False)
        self.out_proj = nn.Linear(n_embd, n_embd, bias=False)
        self.fc_in = nn.Linear(n_embd, 4 * n_embd)
        self.fc_out = nn.Linear(4 * n_embd, n_embd)

    def turned(self, x, sin, cos):
        rot, rest = x.tensor_split([self.rotary_dim], dim=-1)
        return torch.cat([apply_rotary_pos_emb(rot, sin, cos), rest], -1)

    def forward(self, x, layer_past):
        residual, x = x, self.ln_1(x)
        q, k, v = (
            proj(x).unflatten(-1, (self.n_head, -1))
            for proj in (self.q_proj, self.k_proj, self.v_proj)
        )
        past = 0 if layer_past is None else layer_past[0].shape[-2]
        positions = torch.arange(past, past + x.shape[1])
        sin, cos = fixed_pos_embedding(self.rotary_dim, positions)
        q = self.turned(q, sin, cos).permute(0, 2, 1, 3)
        k = self.turned(k, sin, cos).permute(0, 2, 1, 3)
        v = v.permute(0, 2, 1, 3)
        if layer_past is not None:
            k = torch.cat((layer_past[0], k), dim=-2)
            v = torch.cat((layer_past[1], v), dim=-2)
        w = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
        seen = torch.arange(k.shape[-2]) <= positions[:, None]
        w = torch.where(seen, w, torch.finfo(w.dtype).min).softmax(-1)
        attn = (w @ v).permute(0, 2, 1, 3).flatten(2)
        mlp = self.fc_out(nn.functional.gelu(self.fc_in(x)))
        return residual + self.out_proj(attn) + mlp, (k, v)


class Model(nn.Module):
    def __init__(self, n_embd=16, n_head=2, n_layer=2):
        super().__init__()
        self.h = nn.ModuleList(
            ParallelBlock(n_embd, n_head, 4) for _ in range(n_layer)
        )

    def forward(self, inputs_embeds, past_key_values=None):
        past_key_values = past_key_values or (None,) * len(self.h)
        presents = ()
        for block, past in zip(self.h, past_key_values, strict=True):
            inputs_embeds, present = block(inputs_embeds, past)
            presents = (*presents, present)
        return inputs_embeds, presents


PATIENT = Model()
FACTS = {
    "d_model": 16,
    "call": lambda model, x, cache: model(x, past_key_values=cache),
}
INPUTS = {"inputs_embeds": "b n 16"}
