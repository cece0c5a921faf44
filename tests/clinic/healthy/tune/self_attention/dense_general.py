"""Kernels of three axes, as layers of another framework name them."""

import math

import torch
import torch.nn as nn


class DenseGeneral(nn.Module):
    """A map over some of the last axes, into any number of axes."""

    def __init__(self, in_shape, features):
        super().__init__()
        self.axes = len(in_shape)
        fan_in = math.prod(in_shape)
        kernel = torch.randn(*in_shape, *features) / math.sqrt(fan_in)
        self.kernel = nn.Parameter(kernel)
        self.bias = nn.Parameter(torch.zeros(*features))

    def forward(self, inputs):
        y = torch.tensordot(inputs, self.kernel, dims=self.axes)
        return y + self.bias


class MultiHeadDotProductAttention(nn.Module):
    def __init__(self, features, num_heads):
        super().__init__()
        head_dim = features // num_heads
        self.query = DenseGeneral((features,), (num_heads, head_dim))
        self.key = DenseGeneral((features,), (num_heads, head_dim))
        self.value = DenseGeneral((features,), (num_heads, head_dim))
        self.out = DenseGeneral((num_heads, head_dim), (features,))

    def forward(self, inputs_q, inputs_kv=None, mask=None):
        inputs_kv = inputs_q if inputs_kv is None else inputs_kv
        query = self.query(inputs_q)
        key, value = self.key(inputs_kv), self.value(inputs_kv)
        query = query / math.sqrt(query.shape[-1])
        logits = torch.einsum("...qhd,...khd->...hqk", query, key)
        if mask is not None:
            big_neg = torch.finfo(logits.dtype).min
            logits = torch.where(mask, logits, big_neg)
        weights = torch.softmax(logits, -1)
        x = torch.einsum("...hqk,...khd->...qhd", weights, value)
        return self.out(x)


PATIENT = MultiHeadDotProductAttention(features=15, num_heads=3)
FACTS = {
    "layout": "BND",
    "causal": False,
    "mask": "keep",
    "mask_axes": "B1NN",
    "empty_row": "average",
    "n_heads": 3,
}
INPUTS = {"inputs_q": "b n 15", "mask?": "keep b 1 n n"}
