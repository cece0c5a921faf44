"""To learn how it is done: a norm with a backward pass of its own."""

import torch
from torch import nn

eps = 1e-5


class LayerNormFn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w, b):
        mean = x.mean(-1, keepdim=True)
        xshift = x - mean
        rstd = ((xshift**2).mean(-1, keepdim=True) + eps) ** -0.5
        norm = xshift * rstd
        ctx.save_for_backward(norm, rstd, w)
        return norm * w + b

    @staticmethod
    def backward(ctx, dout):
        norm, rstd, w = ctx.saved_tensors
        lead = tuple(range(dout.dim() - 1))
        db = dout.sum(lead)
        dw = (dout * norm).sum(lead)
        dnorm = dout * w
        dx = dnorm - dnorm.mean(-1, keepdim=True)
        dx = dx - norm * (dnorm * norm).mean(-1, keepdim=True)
        return dx * rstd, dw, db


class LayerNorm(nn.Module):
    def __init__(self, C):
        super().__init__()
        self.w = nn.Parameter(torch.ones(C))
        self.b = nn.Parameter(torch.zeros(C))

    def forward(self, x):
        return LayerNormFn.apply(x, self.w, self.b)


PATIENT = LayerNorm(8)
FACTS = {"eps": 1e-5, "dtypes": ("float64", "float32")}
INPUTS = {"x": "b n 8"}
