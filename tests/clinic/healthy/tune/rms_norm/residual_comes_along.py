"""Serving code: it adds a residual first, if it gets one, and returns both."""

import torch
from torch import nn

DISPATCH = {}


def register(backend):
    def keep(fn):
        DISPATCH[backend] = fn
        return fn

    return keep


@register("native")
def forward_native(layer, x, residual=None):
    orig_dtype = x.dtype
    acc = torch.promote_types(orig_dtype, torch.float32)
    x = x.to(acc)
    if residual is not None:
        x = x + residual.to(acc)
        residual = x.to(orig_dtype)
    variance = x.pow(2).mean(dim=-1, keepdim=True)
    x = x * torch.rsqrt(variance + layer.variance_epsilon)
    if layer.has_weight:
        x = x * layer.weight.to(acc)
    x = x.to(orig_dtype)
    return x if residual is None else (x, residual)


class FusedAddRMSNorm(nn.Module):
    def __init__(self, hidden_size, eps=1e-6, *, has_weight=True, dtype=None):
        super().__init__()
        self.hidden_size = hidden_size
        self.variance_epsilon = eps
        self.has_weight = has_weight
        if has_weight:
            self.weight = nn.Parameter(torch.ones(hidden_size, dtype=dtype))
        self._method = DISPATCH["native"]

    def forward(self, hidden_states, residual=None):
        if hidden_states.shape[-1] != self.hidden_size:
            raise ValueError(
                f"expected {self.hidden_size} features, "
                f"not {hidden_states.shape[-1]}"
            )
        return self._method(self, hidden_states, residual)


PATIENT = FusedAddRMSNorm(8, eps=1e-5)
FACTS = {
    "eps": 1e-5,
    "dtypes": ("float64", "float32", "float16", "bfloat16"),
}
INPUTS = {"hidden_states": "b n 8"}
OTHER_INPUTS = [{"hidden_states": "n 8"}, {"hidden_states": "b h n 8"}]
