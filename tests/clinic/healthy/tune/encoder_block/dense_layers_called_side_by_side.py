"""A Keras user's: `call`, `kernel`, `build`, and both sublayers at once."""

import math

import torch
from torch import nn


class Layer(nn.Module):
    def forward(self, *args, **kwargs):
        return self.call(*args, **kwargs)

    def add_weight(self, name, shape, fan_in):
        table = torch.randn(shape) / math.sqrt(fan_in)
        setattr(self, name, nn.Parameter(table))


class EinsumDense(Layer):
    def __init__(self, equation, shape, bias_shape, fan_in):
        super().__init__()
        self.equation = equation
        self.add_weight("kernel", shape, fan_in)
        self.bias = nn.Parameter(torch.zeros(bias_shape))

    def call(self, inputs):
        return torch.einsum(self.equation, inputs, self.kernel) + self.bias


class LocalPosition(Layer):
    """Each token gets something of its neighbours: that is its place."""

    def __init__(self, units, size=3):
        super().__init__()
        self.size = size
        self.add_weight("depthwise_kernel", (units, size), size)

    def call(self, inputs):
        side = self.size // 2
        padded = nn.functional.pad(inputs, (0, 0, side, side))
        frames = padded.unfold(1, self.size, 1)
        return inputs + (frames * self.depthwise_kernel).sum(-1)


class MultiHeadAttention(Layer):
    def __init__(self, units, num_heads, key_dim):
        super().__init__()
        self.position = LocalPosition(units)
        for name in ("query", "key", "value"):
            shape = (units, num_heads, key_dim)
            dense = EinsumDense("abc,cde->abde", shape, shape[1:], units)
            self.add_module(f"{name}_dense", dense)
        shape = (num_heads, key_dim, units)
        self.output_dense = EinsumDense(
            "abcd,cde->abe", shape, (units,), num_heads * key_dim
        )
        self.scale = 1.0 / math.sqrt(key_dim)

    def call(self, inputs):
        inputs = self.position(inputs)
        query = self.query_dense(inputs) * self.scale
        key, value = self.key_dense(inputs), self.value_dense(inputs)
        scores = torch.einsum("aecd,abcd->acbe", key, query)
        scores = torch.softmax(scores, dim=-1)
        out = torch.einsum("acbe,aecd->abcd", scores, value)
        return self.output_dense(out), scores


class Bottleneck(Layer):
    def __init__(self, units, narrow):
        super().__init__()
        self.squeeze = EinsumDense("abc,ce->abe", (units, narrow), narrow, 12)
        self.excite = EinsumDense("abe,ec->abc", (narrow, units), units, 4)

    def call(self, inputs):
        return self.excite(torch.tanh(self.squeeze(inputs)))


class ParallelEncoder(Layer):
    def __init__(self, units, num_heads, key_dim, narrow):
        super().__init__()
        self.layer_normalization = nn.LayerNorm(units, eps=1e-3)
        self.layer_normalization_1 = nn.LayerNorm(units, eps=1e-3)
        self.attention = MultiHeadAttention(units, num_heads, key_dim)
        self.bottleneck = Bottleneck(units, narrow)

    def call(self, inputs):
        told, scores = self.attention(self.layer_normalization(inputs))
        fed = self.bottleneck(self.layer_normalization_1(inputs))
        return torch.stack((inputs, told, fed)).sum(dim=0), scores


PATIENT = ParallelEncoder(units=12, num_heads=3, key_dim=5, narrow=4)
FACTS = {
    "layout": "BND",
    "order": "parallel",
    "attention": "attention",
    "norms": ("layer_normalization", "layer_normalization_1"),
    "feed_forward": "bottleneck",
    "dtypes": ("float64", "float32"),
}
INPUTS = {"inputs": "b n 12"}
