"""Pairs to remember, and readers that differ in how they remember them."""

from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from selfattn import attention
from selfattn.efficient.linear import linear_attention

KEYS, VALUES, WIDTH = 64, 16, 32


def recall_batches(
    size: int, pairs: int, seed: int
) -> Iterator[tuple[Tensor, Tensor]]:
    """Keys that all differ, (size, pairs), and the value of each."""
    generator = torch.Generator().manual_seed(seed)
    while True:
        order = torch.rand(size, KEYS, generator=generator).argsort(-1)
        shape = size, pairs
        yield (
            order[:, :pairs],
            torch.randint(VALUES, shape, generator=generator),
        )


class Recaller(nn.Module):
    """Told pairs, a token each, and asked for the value of every key.

    Args:
        arm: how it remembers: softmax, linear (elu + 1, divided by the sum
            of the weights), sum (features of length 1, nothing divided) or
            delta (the same, and what a key brings so far is taken off).
        d: features of a query and of a key.
    """

    def __init__(self, arm: str, d: int) -> None:
        super().__init__()
        self.arm = arm
        self.keys = nn.Embedding(KEYS, WIDTH)
        self.values = nn.Embedding(VALUES, WIDTH)
        self.asks = nn.Parameter(torch.randn(WIDTH))
        self.W_q = nn.Linear(WIDTH, d, bias=False)
        self.W_k = nn.Linear(WIDTH, d, bias=False)
        self.W_v = nn.Linear(WIDTH, WIDTH, bias=False)
        self.rate = nn.Linear(WIDTH, 1)
        self.read = nn.Linear(WIDTH, VALUES)

    def forward(self, keys: Tensor, values: Tensor) -> Tensor:
        """Scores of every value for every key, (batch, pairs, VALUES)."""
        names = self.keys(keys)
        told = names + self.values(values)
        q, k, v = self.W_q(names + self.asks), self.W_k(told), self.W_v(told)
        if self.arm == "softmax":
            return self.read(attention(q, k, v))
        if self.arm == "linear":
            return self.read(linear_attention(q, k, v))
        q, k = (F.normalize(F.silu(x), dim=-1) for x in (q, k))
        if self.arm == "delta":
            v = corrections(k, v, torch.sigmoid(self.rate(told)))
        return self.read(q @ (k.mT @ v))


def corrections(k: Tensor, v: Tensor, rate: Tensor) -> Tensor:
    """What the delta rule writes for each key, in the quadratic form.

    Args:
        k: keys, (..., n, d).
        v: values, (..., n, d_v).
        rate: β, (..., n, 1): how much of the difference is written.
    """
    seen = (rate * (k @ k.mT)).tril(-1)
    eye = torch.eye(k.shape[-2])
    return torch.linalg.solve_triangular(
        eye + seen, rate * v, upper=False, unitriangular=True
    )
