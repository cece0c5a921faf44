"""A systems course: its own autograd.Function, with the gradient by hand."""

import torch
from torch import nn
from torch.autograd.function import once_differentiable


class _LayerNormFn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, weight, bias, eps):
        xshift = x - x.mean(dim=-1, keepdim=True)
        rstd = (xshift.square().mean(dim=-1, keepdim=True) + eps).rsqrt()
        norm = xshift * rstd
        ctx.save_for_backward(norm, rstd, weight)
        return norm * weight + bias

    @staticmethod
    @once_differentiable
    def backward(ctx, dout):
        norm, rstd, weight = ctx.saved_tensors
        rows = tuple(range(dout.dim() - 1))
        dweight = (dout * norm).sum(dim=rows) if rows else dout * norm
        dbias = dout.sum(dim=rows) if rows else dout
        dnorm = dout * weight
        dx = dnorm - dnorm.mean(dim=-1, keepdim=True)
        dx = dx - norm * (dnorm * norm).mean(dim=-1, keepdim=True)
        return dx * rstd, dweight, dbias, None


class LayerNorm(nn.Module):
    def __init__(self, normalized_shape: int, eps: float = 1e-5):
        super().__init__()
        self.eps = eps
        self.gamma = nn.Parameter(torch.empty(normalized_shape))
        self.beta = nn.Parameter(torch.empty(normalized_shape))
        self.reset_parameters()

    def reset_parameters(self):
        nn.init.ones_(self.gamma)
        nn.init.zeros_(self.beta)

    def forward(self, inp):
        return _LayerNormFn.apply(inp, self.gamma, self.beta, self.eps)


PATIENT = LayerNorm(6)
FACTS = {"eps": 1e-5, "dtypes": ("float64", "float32")}
INPUTS = {"inp": "b n 6"}
OTHER_INPUTS = [{"inp": "n 6"}, {"inp": "b h n 6"}, {"inp": "6"}]
