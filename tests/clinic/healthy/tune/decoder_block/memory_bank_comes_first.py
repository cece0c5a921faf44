"""A translator's layer: memory is its first argument, weights come back."""

import torch
import torch.nn as nn


class Attention(nn.Module):
    def __init__(self, heads, size, drop):
        super().__init__()
        self.heads = heads
        self.linears = nn.ModuleDict(
            {name: nn.Linear(size, size) for name in ("k", "v", "q", "final")}
        )
        self.drop = nn.Dropout(drop)

    def heads_of(self, name, x):
        x = self.linears[name](x)
        return x.view(x.size(0), x.size(1), self.heads, -1).transpose(1, 2)

    def forward(self, key, value, query, hide=None):
        k, v = self.heads_of("k", key), self.heads_of("v", value)
        q = self.heads_of("q", query)
        q = q / (q.size(-1) ** 0.5)
        score = q.matmul(k.transpose(2, 3)).float()
        if hide is not None:
            score = score.masked_fill(hide.unsqueeze(1), -1e18)
        attn = score.softmax(dim=-1).to(q.dtype)
        y = self.drop(attn).matmul(v).transpose(1, 2).contiguous()
        y = y.view(query.size(0), query.size(1), -1)
        return self.linears["final"](y), attn[:, 0]


class PositionwiseFeedForward(nn.Module):
    def __init__(self, size, inner, drop):
        super().__init__()
        self.w_1 = nn.Linear(size, inner)
        self.w_2 = nn.Linear(inner, size)
        self.layer_norm = nn.LayerNorm(size, eps=1e-6)
        self.dropout_1 = nn.Dropout(drop)
        self.dropout_2 = nn.Dropout(drop)

    def forward(self, x):
        inter = self.dropout_1(torch.relu(self.w_1(self.layer_norm(x))))
        return self.dropout_2(self.w_2(inter)) + x


class TranslatorLayer(nn.Module):
    def __init__(self, size, heads, inner, drop=0.2):
        super().__init__()
        self.self_attn = Attention(heads, size, drop)
        self.context_attn = Attention(heads, size, drop)
        self.feed_forward = PositionwiseFeedForward(size, inner, drop)
        self.layer_norm_1 = nn.LayerNorm(size, eps=1e-6)
        self.layer_norm_2 = nn.LayerNorm(size, eps=1e-6)
        self.drop = nn.Dropout(drop)

    def forward(self, memory_bank, inputs, src_pad_mask=None):
        steps = inputs.size(1)
        future = inputs.new_ones(steps, steps).triu(diagonal=1)
        normed = self.layer_norm_1(inputs)
        query, _ = self.self_attn(
            normed, normed, normed, hide=future.bool().unsqueeze(0)
        )
        query = self.drop(query) + inputs
        normed = self.layer_norm_2(query)
        if src_pad_mask is not None:
            src_pad_mask = src_pad_mask.unsqueeze(1)
        mid, attns = self.context_attn(
            memory_bank, memory_bank, normed, hide=src_pad_mask
        )
        return self.feed_forward(self.drop(mid) + query), attns


PATIENT = TranslatorLayer(12, 3, 17)
FACTS = {
    "order": "pre",
    "layout": "BND",
    "padding": "block",
    "self_attention": "self_attn",
    "cross_attention": "context_attn",
    "feed_forward": "feed_forward",
    "norms": ["layer_norm_1", "layer_norm_2", "feed_forward.layer_norm"],
    "n_heads": 3,
    "dropout": 0.2,
    "precision": "float32",
    "dtypes": ("float32", "bfloat16"),
}
INPUTS = {
    "inputs": "b n 12",
    "memory_bank": "b m 12",
    "src_pad_mask?": "padding b m",
}
