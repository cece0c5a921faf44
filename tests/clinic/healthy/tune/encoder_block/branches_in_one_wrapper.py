"""For translation, as of old: one wrapper adds what two branches say."""

import torch
from torch import nn


class Buckets(nn.Module):
    """A number for each distance; far ones share one."""

    def __init__(self, heads, furthest):
        super().__init__()
        self.furthest = furthest
        self.table = nn.Embedding(2 * furthest + 1, heads)

    def forward(self, n):
        at = torch.arange(n, device=self.table.weight.device)
        far = (at[None] - at[:, None]).clamp(-self.furthest, self.furthest)
        return self.table(far + self.furthest).permute(2, 0, 1)


class Attending(nn.Module):
    def __init__(self, embed_dim, heads, attention_dropout):
        super().__init__()
        self.heads = heads
        self.in_proj = nn.Linear(embed_dim, 3 * embed_dim)
        self.out_proj = nn.Linear(embed_dim, embed_dim)
        self.distances = Buckets(heads, furthest=4)
        self.dropout = nn.Dropout(attention_dropout)

    def forward(self, x, attn_mask=None, padding_mask=None):
        q, k, v = (
            self.in_proj(x)
            .unflatten(-1, (3, self.heads, -1))
            .permute(2, 0, 3, 1, 4)
        )
        scores = (q * q.shape[-1] ** -0.5) @ k.transpose(-2, -1)
        scores = scores + self.distances(x.shape[1])
        if attn_mask is not None:
            scores = scores + attn_mask
        if padding_mask is not None:
            wrong = padding_mask[:, None, None]
            scores = scores.masked_fill(wrong, float("-inf"))
        nothing = scores.amax(dim=-1, keepdim=True).isneginf()
        probs = scores.masked_fill(nothing, 0.0).softmax(dim=-1)
        probs = self.dropout(probs.masked_fill(nothing, 0.0))
        return self.out_proj((probs @ v).transpose(1, 2).flatten(2)), probs


class Network(nn.Sequential):
    def forward(self, x, **masks):
        return super().forward(x), None


class AddBranches(nn.Module):
    def __init__(self, dim, *branches, dropout):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.branches = nn.ModuleList(branches)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x, **masks):
        said = [branch(self.norm(x), **masks) for branch in self.branches]
        return x + sum(self.dropout(one) for one, _ in said), said[0][1]


class TranslatorEncoderLayer(nn.Module):
    def __init__(self, dim=8, heads=2, ffn_dim=14, dropout=0.5):
        super().__init__()
        network = Network(
            nn.Linear(dim, ffn_dim), nn.GELU(), nn.Linear(ffn_dim, dim)
        )
        self.residual = AddBranches(
            dim, Attending(dim, heads, dropout), network, dropout=dropout
        )

    def forward(
        self,
        hidden_states,
        attention_mask=None,
        encoder_padding_mask=None,
        need_weights=False,
    ):
        x, weights = self.residual(
            hidden_states,
            attn_mask=attention_mask,
            padding_mask=encoder_padding_mask,
        )
        return (x, weights) if need_weights else x


PATIENT = TranslatorEncoderLayer()
FACTS = {
    "layout": "BND",
    "order": "parallel",
    "attention": "residual.branches.0",
    "norms": ("residual.norm",),
    "feed_forward": "residual.branches.1",
    "mask": "add",
    "padding": "block",
    "dropout": 0.5,
    "extra": "distances in the scores",
    "dtypes": ("float64", "float32"),
}
INPUTS = {
    "hidden_states": "b n 8",
    "attention_mask?": "add n n",
    "encoder_padding_mask?": "padding b n",
}
