"""Of a diffusion library: a processor does the work; the way out is a list."""

import torch
import torch.nn.functional as F
from torch import nn


class SlicedProcessor:
    """A few heads at a time, to save memory."""

    def __init__(self, slice_size):
        self.slice_size = slice_size

    def __call__(self, attn, sample, encoder_sample, attention_mask=None):
        query = attn.head_to_batch(attn.to_q(sample))
        key = attn.head_to_batch(attn.to_k(encoder_sample))
        value = attn.head_to_batch(attn.to_v(encoder_sample))
        if attention_mask is not None:
            times = query.shape[0] // attention_mask.shape[0]
            attention_mask = attention_mask.repeat_interleave(times, dim=0)
        pieces = []
        for start in range(0, query.shape[0], self.slice_size):
            part = slice(start, start + self.slice_size)
            mask = None if attention_mask is None else attention_mask[part]
            pieces.append(
                F.scaled_dot_product_attention(
                    query[part], key[part], value[part], attn_mask=mask
                )
            )
        out = attn.batch_to_head(torch.cat(pieces))
        for layer in attn.to_out:
            out = layer(out)
        return out


class CrossAttention(nn.Module):
    def __init__(self, query_dim, context_dim, heads, dim_head, dropout=0.0):
        super().__init__()
        self.heads = heads
        inner = heads * dim_head
        self.to_q = nn.Linear(query_dim, inner, bias=False)
        self.to_k = nn.Linear(context_dim, inner, bias=False)
        self.to_v = nn.Linear(context_dim, inner, bias=False)
        self.to_out = nn.ModuleList(
            [nn.Linear(inner, query_dim), nn.Dropout(dropout)]
        )
        self.processor = SlicedProcessor(slice_size=2)

    def head_to_batch(self, t):
        return t.unflatten(-1, (self.heads, -1)).transpose(1, 2).flatten(0, 1)

    def batch_to_head(self, t):
        return t.unflatten(0, (-1, self.heads)).transpose(1, 2).flatten(-2)

    def forward(self, sample, encoder_sample, attention_mask=None):
        return self.processor(self, sample, encoder_sample, attention_mask)


PATIENT = CrossAttention(10, 7, heads=3, dim_head=4)
FACTS = {
    "layout": "BND",
    "mask": "add",
    "mask_axes": "BNN",
    "names": {
        "x": "sample",
        "context": "encoder_sample",
        "mask": "attention_mask",
    },
    "projections": {
        "q": "to_q",
        "k": "to_k",
        "v": "to_v",
        "out": "to_out.0",
    },
    "d_model": 10,
    "n_heads": 3,
    "dtypes": ("float64", "float32", "bfloat16"),
}
INPUTS = {
    "sample": "b n 10",
    "encoder_sample": "b m 7",
    "attention_mask?": "add b n m",
}
