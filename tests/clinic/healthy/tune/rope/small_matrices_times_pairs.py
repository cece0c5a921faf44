"""As image generators do: a matrix of two by two for each token and pair."""

import torch
from torch import Tensor


def rope_matrices(pos: Tensor, dim: int, theta: int) -> Tensor:
    assert dim % 2 == 0
    scale = torch.arange(0, dim, 2, dtype=torch.float64) / dim
    omega = 1.0 / (theta**scale)
    out = torch.einsum("...n,d->...nd", pos.double(), omega)
    cos, sin = torch.cos(out), torch.sin(out)
    columns = torch.stack([cos, -sin, sin, cos], dim=-1)
    return columns.view(*columns.shape[:-1], 2, 2)


def apply_rope(xq: Tensor, ids: Tensor, theta: int = 10_000) -> Tensor:
    freqs_cis = rope_matrices(ids, xq.shape[-1], theta)
    xq_ = xq if xq.dtype == torch.float64 else xq.float()
    freqs_cis = freqs_cis.to(xq_.dtype)
    xq_ = xq_.reshape(*xq.shape[:-1], -1, 1, 2)
    xq_out = freqs_cis[..., 0] * xq_[..., 0] + freqs_cis[..., 1] * xq_[..., 1]
    return xq_out.reshape(xq.shape).to(xq.dtype)


PATIENT = apply_rope
FACTS = {"pairs": "neighbours", "told": "positions", "name": "ids"}
INPUTS = {"xq": "b h n 2*d", "ids": "range n"}
