"""Annotated papers: the shape of the last axes, of which there is one."""

import torch
from torch import nn


class LayerNorm(nn.Module):
    r"""Layer normalisation over the axes that `normalized_shape` names:

    $$\hat X = \frac{X - \mathbb{E}[X]}{\sqrt{Var[X] + \epsilon}}$$

    with a gain and a bias of the same shape.
    """

    def __init__(
        self,
        normalized_shape: int | list[int] | torch.Size,
        *,
        eps: float = 1e-5,
        elementwise_affine: bool = True,
    ):
        super().__init__()
        if isinstance(normalized_shape, int):
            normalized_shape = [normalized_shape]
        self.normalized_shape = torch.Size(normalized_shape)
        self.dims = tuple(range(-len(self.normalized_shape), 0))
        self.eps = eps
        self.gain = self.bias = None
        if elementwise_affine:
            self.gain = nn.Parameter(torch.ones(self.normalized_shape))
            self.bias = nn.Parameter(torch.zeros(self.normalized_shape))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        assert x.shape[-len(self.dims) :] == self.normalized_shape
        mean = x.mean(dim=self.dims, keepdim=True)
        # $Var[X]$, of all and not of a sample
        var = ((x - mean) ** 2).mean(dim=self.dims, keepdim=True)
        x_norm = (x - mean) / torch.sqrt(var + self.eps)
        if self.gain is None:
            return x_norm
        return self.gain * x_norm + self.bias


PATIENT = LayerNorm([12])
FACTS = {"eps": 1e-5, "dtypes": ("float64", "float32")}
INPUTS = {"x": "b n 12"}
