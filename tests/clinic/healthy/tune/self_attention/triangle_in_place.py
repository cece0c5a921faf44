"""As a book teaches it: d_in and d_out, a triangle that hides in place."""

import torch
import torch.nn as nn


class MultiHeadCausalAttention(nn.Module):
    def __init__(
        self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False
    ):
        super().__init__()
        if d_out % num_heads:
            raise ValueError("num_heads does not divide d_out")
        self.d_out, self.num_heads = d_out, num_heads
        self.head_dim = d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        ones = torch.ones(context_length, context_length)
        self.register_buffer("mask", torch.triu(ones, diagonal=1))

    def forward(self, x):
        b, num_tokens, _ = x.shape

        # step 1: project, (b, num_tokens, d_out)
        keys = self.W_key(x)
        values = self.W_value(x)
        queries = self.W_query(x)

        # step 2: (b, num_tokens, num_heads, head_dim), heads to the front
        keys = keys.view(b, num_tokens, self.num_heads, self.head_dim)
        keys = keys.transpose(1, 2)
        values = values.view(b, num_tokens, self.num_heads, self.head_dim)
        values = values.transpose(1, 2)
        queries = queries.view(b, num_tokens, self.num_heads, self.head_dim)
        queries = queries.transpose(1, 2)

        # step 3: scores, the future hidden
        attn_scores = queries @ keys.transpose(2, 3)
        future = self.mask.bool()[:num_tokens, :num_tokens]
        attn_scores.masked_fill_(future, -torch.inf)

        # step 4: weights
        attn_weights = torch.softmax(attn_scores / self.head_dim**0.5, dim=-1)
        attn_weights = self.dropout(attn_weights)

        # step 5: the context, heads side by side again
        context_vec = (attn_weights @ values).transpose(1, 2)
        context_vec = context_vec.reshape(b, num_tokens, self.d_out)
        return self.out_proj(context_vec)


PATIENT = MultiHeadCausalAttention(9, 12, 14, dropout=0.1, num_heads=2)
FACTS = {
    "layout": "BND",
    "causal": True,
    "n_heads": 2,
    "longest": 14,
    "dropout": 0.1,
}
INPUTS = {"x": "b n 9"}
SIZES = {"n": (1, 14)}
