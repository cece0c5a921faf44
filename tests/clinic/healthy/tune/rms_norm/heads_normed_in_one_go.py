"""A diffusion transformer's norm of queries: logs of lengths, gains from 0."""

import torch
from torch import nn


class QKNorm(nn.Module):
    """Normalises each head's vector; meant for queries and keys alike.

    The gain is 1 + scale. All of it is multiplied at once, in the exponent:
    a length is exp(½ log(mean square + eps)).
    """

    def __init__(self, head_dim: int, eps: float = 1e-6):
        super().__init__()
        self.eps = eps
        self.scale = nn.Parameter(torch.zeros(head_dim))

    def log_length(self, t: torch.Tensor) -> torch.Tensor:
        mean_square = t.square().sum(-1, keepdim=True) / t.size(-1)
        return 0.5 * torch.log(mean_square + self.eps)

    def forward(self, *tensors: torch.Tensor, t: torch.Tensor | None = None):
        if t is not None:
            tensors = (*tensors, t)
        normed = []
        for one in tensors:
            inverse = torch.exp(-self.log_length(one))
            normed.append(torch.addcmul(one, one, self.scale) * inverse)
        return normed[0] if len(normed) == 1 else tuple(normed)


PATIENT = QKNorm(4)
FACTS = {
    "eps": 1e-6,
    "gain": "one plus",
    "dtypes": ("float64", "float32"),
}
INPUTS = {"t": "b h n 4"}
OTHER_INPUTS = [{"t": "b n 4"}, {"t": "n 4"}]
