"""A Keras user's: attention and a convolution of the past, side by side."""

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class Outputs(NamedTuple):
    hidden: Tensor
    attention_scores: Tensor


class Dense(nn.Linear):
    """As in Keras: an activation belongs to the layer."""

    def __init__(self, width, units, activation=None):
        super().__init__(width, units)
        self.activation = activation or (lambda x: x)

    def forward(self, x):
        return self.activation(super().forward(x))


class PastConvolution(nn.Module):
    def __init__(self, units, filters, kernel_size):
        super().__init__()
        self.reach = kernel_size - 1
        self.conv = nn.Conv1d(units, filters, kernel_size)
        self.dense = Dense(filters, units)

    def forward(self, x):
        padded = F.pad(x.transpose(1, 2), (self.reach, 0))
        return self.dense(torch.relu(self.conv(padded)).transpose(1, 2))


class CausalLayer(nn.Module):
    def __init__(self, units, num_heads, filters=6, kernel_size=3):
        super().__init__()
        self.num_heads = num_heads
        self.layernorm = nn.LayerNorm(units, eps=1e-3)
        self.query_dense = Dense(units, units)
        self.key_dense = Dense(units, units)
        self.value_dense = Dense(units, units)
        self.output_dense = Dense(units, units)
        self.convolution = PastConvolution(units, filters, kernel_size)

    def attention(self, x, padding_mask):
        def split(y):
            return y.unflatten(2, (self.num_heads, -1)).transpose(1, 2)

        q = split(self.query_dense(x))
        k, v = split(self.key_dense(x)), split(self.value_dense(x))
        scores = q @ k.mT / k.shape[-1] ** 0.5
        later = torch.ones_like(scores[0, 0], dtype=torch.bool).triu(1)
        scores = scores.masked_fill(later | padding_mask[:, None, None], -1e9)
        scores = scores.softmax(-1)
        return self.output_dense(
            (scores @ v).transpose(1, 2).flatten(2)
        ), scores

    def forward(self, padding_mask, inputs):
        x = self.layernorm(inputs)
        attended, scores = self.attention(x, padding_mask)
        real = x.masked_fill(padding_mask.unsqueeze(-1), 0)
        return Outputs(inputs + attended + self.convolution(real), scores)


PATIENT = CausalLayer(units=8, num_heads=4)
FACTS = {
    "layout": "BND",
    "order": "parallel",
    "formula": "own",
    "path": "clear",
    "causal": True,
    "padding": "block",
    "norms": ["layernorm"],
    "feed_forward": "convolution",
    "flat_attention": [
        "query_dense",
        "key_dense",
        "value_dense",
        "output_dense",
    ],
    "n_heads": 4,
    "dtypes": ("float64", "float32", "bfloat16"),
}
INPUTS = {"padding_mask": "padding b n", "inputs": "b n 8"}
