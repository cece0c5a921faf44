"""Homework: from variance and mean, with a gradient that was asked for."""

import torch
from torch import nn


def root(x, eps):
    var, mean = torch.var_mean(x, dim=-1, correction=0, keepdim=True)
    return torch.sqrt(var + mean * mean + eps)


class RootMeanSquare(torch.autograd.Function):
    """y = x / r, where r^2 = var(x) + mean(x)^2 + eps."""

    @staticmethod
    def forward(ctx, x, eps):
        ctx.save_for_backward(x)
        ctx.eps = eps
        return x / root(x, eps)

    @staticmethod
    def backward(ctx, dy):
        # dL/dx_j = (dy_j - y_j * mean_i(dy_i * y_i)) / r
        (x,) = ctx.saved_tensors
        r = root(x, ctx.eps)
        y = x / r
        return (dy - y * torch.mean(dy * y, dim=-1, keepdim=True)) / r, None


class HomeworkRMSNorm(nn.Module):
    def __init__(self, dim: int, eps: float = 1e-12) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.empty(dim))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        # the gain is 1 + weight
        nn.init.zeros_(self.weight)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        assert x.shape[-1] == self.weight.numel(), "wrong width"
        y = RootMeanSquare.apply(x, self.eps)
        return y + y * self.weight


PATIENT = HomeworkRMSNorm(dim=7)
FACTS = {"eps": 1e-12, "gain": "one plus", "dtypes": ("float64", "float32")}
INPUTS = {"x": "b n 7"}
OTHER_INPUTS = ({"x": "n 7"},)
