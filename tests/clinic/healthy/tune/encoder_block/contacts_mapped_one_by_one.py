"""For proteins: written for one chain, and mapped over a batch of them."""

import torch
from torch import nn


class Contacts(nn.Module):
    """Attention within one chain; a convolution draws its position bias."""

    def __init__(self, d_pair, heads, reach=4):
        super().__init__()
        self.heads, self.reach = heads, reach
        self.to_qkv = nn.Linear(d_pair, 3 * d_pair, bias=False)
        self.to_out = nn.Linear(d_pair, d_pair)
        self.ramp = nn.Conv1d(1, heads, 3, padding=1)

    def bias(self, n, like):
        """heads, n, n: a smooth curve of the distance along the chain."""
        far = torch.linspace(-1, 1, 2 * self.reach + 1).to(like)
        curve = torch.tanh(self.ramp(far[None]))
        at = torch.arange(n, device=like.device)
        apart = (at[None] - at[:, None]).clamp(-self.reach, self.reach)
        return curve[:, apart + self.reach]

    def one(self, chain, blocked, bias):
        """One chain (n, d) with what is blocked in it (n, n)."""
        qkv = self.to_qkv(chain).reshape(len(chain), 3, self.heads, -1)
        q, k, v = qkv.permute(1, 2, 0, 3).unbind(0)
        logits = torch.matmul(q, k.mT) / q.shape[-1] ** 0.5 + bias
        lowest = torch.finfo(logits.dtype).min
        logits = torch.where(blocked, lowest, logits)
        share = torch.where(blocked, 0.0, logits.softmax(-1))
        return self.to_out((share @ v).transpose(0, 1).flatten(1))

    def forward(self, chains, contact_block=None):
        b, n, _ = chains.shape
        if contact_block is None:
            contact_block = chains.new_zeros(b, n, n, dtype=torch.bool)
        over_batch = torch.vmap(self.one, in_dims=(0, 0, None))
        return over_batch(chains, contact_block, self.bias(n, chains))


class Maxout(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.first = nn.Linear(dim, hidden)
        self.second = nn.Linear(dim, hidden)
        self.last = nn.Linear(hidden, dim)

    def forward(self, x):
        return self.last(torch.maximum(self.first(x), self.second(x)))


class ProteinLayer(nn.Module):
    def __init__(self, d_pair, heads, hidden, layer_idx, dropout=0.2):
        super().__init__()
        self.name = f"block_{layer_idx:02d}"
        self.ln_in_attn = nn.LayerNorm(d_pair)
        self.attn = Contacts(d_pair, heads)
        self.ln_out_attn = nn.LayerNorm(d_pair)
        self.ln_in_ffn = nn.LayerNorm(d_pair)
        self.ffn = Maxout(d_pair, hidden)
        self.ln_out_ffn = nn.LayerNorm(d_pair)
        self.dropout = nn.Dropout(dropout)

    def forward(self, residues, *, contact_block=None, cache=None):
        told = self.attn(self.ln_in_attn(residues), contact_block)
        residues = residues + self.dropout(self.ln_out_attn(told))
        fed = self.ffn(self.ln_in_ffn(residues))
        return residues + self.dropout(self.ln_out_ffn(fed)), cache


PATIENT = ProteinLayer(d_pair=12, heads=2, hidden=10, layer_idx=7)
FACTS = {
    "layout": "BND",
    "order": "sandwich",
    "attention": "attn",
    "norms": ("ln_in_attn", "ln_out_attn", "ln_in_ffn", "ln_out_ffn"),
    "feed_forward": "ffn",
    "mask": "block",
    "dropout": 0.2,
    "dtypes": ("float64", "float32", "bfloat16"),
}
INPUTS = {"residues": "b n 12", "contact_block?": "block b n n"}
