"""By one who comes from Keras: query, value, and a key if it is another."""

import math

import torch
from torch import nn


class EinsumDense(nn.Module):
    def __init__(self, equation, shape, bias_shape):
        super().__init__()
        self.equation = equation
        self.kernel = nn.Parameter(torch.empty(shape))
        self.bias = nn.Parameter(torch.zeros(bias_shape))
        nn.init.xavier_normal_(self.kernel)

    def forward(self, x):
        return torch.einsum(self.equation, x, self.kernel) + self.bias


class MultiHeadAttention(nn.Module):
    def __init__(self, num_heads, key_dim, value_dim, dim, context_dim):
        super().__init__()

        def dense(of, to):
            return EinsumDense("...e,ehd->...hd", (of, *to), to)

        self.key_dim = key_dim
        self._query_dense = dense(dim, (num_heads, key_dim))
        self._key_dense = dense(context_dim, (num_heads, key_dim))
        self._value_dense = dense(context_dim, (num_heads, value_dim))
        self._output_dense = EinsumDense(
            "...hd,hde->...e", (num_heads, value_dim, dim), (dim,)
        )

    def forward(
        self,
        query,
        value,
        key=None,
        attention_mask=None,
        return_attention_scores=False,
    ):
        key = value if key is None else key
        query = self._query_dense(query) / math.sqrt(self.key_dim)
        key, value = self._key_dense(key), self._value_dense(value)
        scores = torch.einsum("aecd,abcd->acbe", key, query)
        if attention_mask is not None:
            adder = (~attention_mask).to(scores.dtype) * -1e9
            scores = scores + adder.unsqueeze(1)
        scores = torch.softmax(scores, dim=-1)
        output = torch.einsum("acbe,aecd->abcd", scores, value)
        output = self._output_dense(output)
        return (output, scores) if return_attention_scores else output


PATIENT = MultiHeadAttention(3, key_dim=4, value_dim=5, dim=10, context_dim=8)
FACTS = {
    "layout": "BND",
    "mask": "keep",
    "mask_axes": "BNN",
    "names": {"x": "query", "context": "value", "mask": "attention_mask"},
    "projections": {
        "q": "_query_dense",
        "k": "_key_dense",
        "v": "_value_dense",
        "out": "_output_dense",
    },
    "d_model": 10,
    "n_heads": 3,
    "dtypes": ("float64", "float32"),
}
INPUTS = {
    "query": "b n 10",
    "value": "b m 8",
    "key?": "=value",
    "attention_mask?": "keep b n m",
    "return_attention_scores?": "true",
}
