"""The module holds its maps; how they are used, another object knows."""

import torch
import torch.nn.functional as F
from torch import nn


class SlicedProcessor:
    """Some heads at a time, for cards with little memory."""

    def __init__(self, slice_size):
        self.slice_size = slice_size

    def __call__(self, attn, hidden_states, context, bias):
        query = attn.fold(attn.to_q(hidden_states))
        key, value = (
            attn.fold(attn.to_k(context)),
            attn.fold(attn.to_v(context)),
        )
        out = torch.zeros_like(query)
        for start in range(0, query.shape[0], self.slice_size):
            part = slice(start, start + self.slice_size)
            scores = torch.bmm(query[part], key[part].transpose(1, 2))
            scores = scores * attn.scale
            if bias is not None:
                of_text = torch.arange(query.shape[0])[part] // attn.heads
                scores = scores + bias[of_text]
            out[part] = torch.bmm(scores.softmax(dim=-1), value[part])
        return attn.to_out(attn.unfold(out))


class PlainProcessor:
    def __call__(self, attn, hidden_states, context, bias):
        query, key, value = (
            attn.fold(f(t)).unflatten(0, (-1, attn.heads))
            for f, t in (
                (attn.to_q, hidden_states),
                (attn.to_k, context),
                (attn.to_v, context),
            )
        )
        if bias is not None:
            bias = bias.unsqueeze(1)
        out = F.scaled_dot_product_attention(query, key, value, bias)
        return attn.to_out(attn.unfold(out.flatten(0, 1)))


class ProcessedAttention(nn.Module):
    def __init__(self, query_dim, cross_attention_dim, heads, processor=None):
        super().__init__()
        self.heads = heads
        self.scale = (query_dim // heads) ** -0.5
        self.to_q = nn.Linear(query_dim, query_dim, bias=False)
        self.to_k = nn.Linear(cross_attention_dim, query_dim, bias=False)
        self.to_v = nn.Linear(cross_attention_dim, query_dim, bias=False)
        self.to_out = nn.Linear(query_dim, query_dim)
        self.set_processor(processor or PlainProcessor())

    def set_processor(self, processor):
        self.processor = processor

    def fold(self, t):
        t = t.unflatten(-1, (self.heads, -1)).transpose(1, 2)
        return t.flatten(0, 1)

    def unfold(self, t):
        t = t.unflatten(0, (-1, self.heads)).transpose(1, 2)
        return t.flatten(2)

    def forward(self, hidden_states, encoder_states, attention_bias=None):
        return self.processor(
            self, hidden_states, encoder_states, attention_bias
        )


PATIENT = ProcessedAttention(12, 7, 4)
PATIENT.set_processor(SlicedProcessor(3))
FACTS = {
    "layout": "BND",
    "mask": "add",
    "mask_axes": "BNN",
    "empty_row": "nan",
    "n_heads": 4,
}
INPUTS = {
    "hidden_states": "b n 12",
    "encoder_states": "b m 7",
    "attention_bias?": "add b n m",
}
