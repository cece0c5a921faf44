"""A context, or else the sample itself; heads go into the batch."""

import torch
from torch import nn


class CrossAttention(nn.Module):
    """Attention of a picture to a prompt.

    Parameters:
        query_dim: channels of the sample
        cross_attention_dim: channels of the context, if there is one
        heads, dim_head: how many heads, and how wide
        dropout: behind the last map
    """

    def __init__(
        self,
        query_dim,
        cross_attention_dim=None,
        heads=8,
        dim_head=64,
        dropout=0.0,
    ):
        super().__init__()
        inner_dim = dim_head * heads
        cross_attention_dim = cross_attention_dim or query_dim
        self.scale = dim_head**-0.5
        self.heads = heads
        self.to_q = nn.Linear(query_dim, inner_dim, bias=False)
        self.to_k = nn.Linear(cross_attention_dim, inner_dim, bias=False)
        self.to_v = nn.Linear(cross_attention_dim, inner_dim, bias=False)
        self.to_out = nn.ModuleList(
            [nn.Linear(inner_dim, query_dim), nn.Dropout(dropout)]
        )

    def head_to_batch_dim(self, tensor):
        b, s, dim = tensor.shape
        tensor = tensor.reshape(b, s, self.heads, dim // self.heads)
        return tensor.permute(0, 2, 1, 3).reshape(b * self.heads, s, -1)

    def batch_to_head_dim(self, tensor):
        bh, s, dim = tensor.shape
        tensor = tensor.reshape(bh // self.heads, self.heads, s, dim)
        return tensor.permute(0, 2, 1, 3).reshape(-1, s, dim * self.heads)

    def forward(
        self, hidden_states, encoder_hidden_states=None, attention_mask=None
    ):
        if encoder_hidden_states is None:
            encoder_hidden_states = hidden_states
        query = self.head_to_batch_dim(self.to_q(hidden_states))
        key = self.head_to_batch_dim(self.to_k(encoder_hidden_states))
        value = self.head_to_batch_dim(self.to_v(encoder_hidden_states))

        scores = torch.bmm(query, key.transpose(-1, -2)) * self.scale
        if attention_mask is not None:
            attention_mask = attention_mask.repeat_interleave(
                self.heads, dim=0
            )
            scores = scores + attention_mask
        probs = scores.softmax(dim=-1)
        hidden_states = self.batch_to_head_dim(torch.bmm(probs, value))

        for layer in self.to_out:
            hidden_states = layer(hidden_states)
        return hidden_states


PATIENT = CrossAttention(10, 6, heads=3, dim_head=4)
FACTS = {
    "layout": "BND",
    "mask": "add",
    "mask_axes": "BNN",
    "empty_row": "nan",
    "n_heads": 3,
    "projections": {"out": "to_out.0"},
}
INPUTS = {
    "hidden_states": "b n 10",
    "encoder_hidden_states": "b m 6",
    "attention_mask?": "add b n m",
}
