"""By one who comes from Flax: kernels of three axes, and heads by vmap."""

import math

import torch
from torch import Tensor, nn


def lecun(*shape: int, fan_in: int) -> nn.Parameter:
    return nn.Parameter(torch.randn(*shape) / math.sqrt(fan_in))


class MultiHeadDotProductAttention(nn.Module):
    def __init__(self, features: int, num_heads: int, head_dim: int):
        super().__init__()
        # features to (heads, head_dim) at once: nothing is ever cut
        inner = (num_heads, head_dim)
        self.query_kernel = lecun(features, *inner, fan_in=features)
        self.key_kernel = lecun(features, *inner, fan_in=features)
        self.value_kernel = lecun(features, *inner, fan_in=features)
        self.query_bias = nn.Parameter(torch.zeros(inner))
        self.key_bias = nn.Parameter(torch.zeros(inner))
        self.value_bias = nn.Parameter(torch.zeros(inner))
        self.out_kernel = lecun(*inner, features, fan_in=num_heads * head_dim)
        self.out_bias = nn.Parameter(torch.zeros(features))

    def forward(self, inputs_q: Tensor, mask: Tensor | None = None):
        keep = None if mask is None else mask.squeeze(1)

        def head(wq, wk, wv, wo, bq, bk, bv):
            query = inputs_q @ wq + bq
            key = inputs_q @ wk + bk
            value = inputs_q @ wv + bv
            query = query / math.sqrt(query.shape[-1])
            logits = query @ key.mT
            if keep is not None:
                lowest = torch.finfo(logits.dtype).min
                logits = torch.where(keep, logits, lowest)
            return logits.softmax(-1) @ value @ wo

        every = torch.vmap(head, in_dims=(1, 1, 1, 0, 0, 0, 0))
        out = every(
            self.query_kernel,
            self.key_kernel,
            self.value_kernel,
            self.out_kernel,
            self.query_bias,
            self.key_bias,
            self.value_bias,
        )
        return out.sum(0) + self.out_bias


PATIENT = MultiHeadDotProductAttention(features=10, num_heads=3, head_dim=4)
FACTS = {
    "layout": "BND",
    "causal": False,
    "mask": "keep",
    "mask_axes": "B1NN",
    "names": {"x": "inputs_q"},
    "projections": {
        "q": "query_kernel",
        "k": "key_kernel",
        "v": "value_kernel",
        "out": "out_kernel",
    },
    "d_model": 10,
    "n_heads": 3,
    "empty_row": "average",
    "dtypes": ("float64", "float32", "bfloat16"),
}
INPUTS = {"inputs_q": "b n 10", "mask?": "keep b 1 n n"}
