"""What happens to tokens and gradients in untrained blocks.

For the chapter on layers. The residual path, the place of the norm and the
feed-forward network are switched on and off; nothing is trained.
"""

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

ABOUT = (
    "Twelve blocks with random weights of gain one, ten tokens of 16 "
    "features, float64. By block, as powers of ten: how distinct the tokens "
    "still are (distance from their mean over their size), the gradient of "
    "a random sum of the outputs at each block's input (path), and at its "
    "query matrix (query). 36 further blocks follow, for how distinct the "
    "tokens are after 16, 24, 32 and 48. What is below 1e-15 is written as "
    "that."
)
SEEDS = range(10)
SETTINGS = [
    {"residual": residual, "norm": norm, "feed_forward": feed_forward}
    for residual in (False, True)
    for norm in ("none", "pre", "post")
    for feed_forward in (False, True)
]
SMALLEST = {"residual": True, "norm": "pre", "feed_forward": False}
# In float64 another order of adding moves these by parts in 1e12.
TOLERANCE = 0.001

DEPTH, N, D = 12, 10, 16
FURTHER = (16, 24, 32, 48)  # blocks after which no gradient is taken
LEAST = 1e-15  # below that there is nothing but rounding

Sublayer = Callable[[Tensor], Tensor]


def distinct(x: Tensor) -> float:
    """How far the tokens are from their mean, as a share of their size."""
    return ((x - x.mean(dim=0)).norm() / x.norm()).item()


def power(x: float) -> float:
    """The power of ten that x is, at least that of `LEAST`."""
    return math.log10(max(x, LEAST))


def sublayers(generator: torch.Generator) -> tuple[Tensor, Sublayer, Sublayer]:
    """The query matrix, attention and feed-forward network of one block.

    Every matrix keeps the size of what it is given: its numbers have the
    variance 1/d, twice that where ReLU takes half of them away.
    """

    def matrix(rows: int, columns: int, gain: float = 1.0) -> Tensor:
        size = (rows, columns)
        numbers = torch.randn(size, generator=generator, dtype=torch.float64)
        return numbers * math.sqrt(gain / rows)

    W_q, W_k, W_v, W_o = (matrix(D, D) for _ in range(4))
    W_in, W_out = matrix(D, 4 * D), matrix(4 * D, D, gain=2.0)
    W_q.requires_grad_()

    def attend(x: Tensor) -> Tensor:
        scores = (x @ W_q) @ (x @ W_k).T / math.sqrt(D)
        return scores.softmax(dim=-1) @ x @ W_v @ W_o

    def feed_forward(x: Tensor) -> Tensor:
        return (x @ W_in).relu() @ W_out

    return W_q, attend, feed_forward


def step(x: Tensor, layer: Sublayer, residual: bool, norm: str) -> Tensor:
    """One sublayer, with or without the path past it and the norm."""

    def normal(x: Tensor) -> Tensor:
        return F.layer_norm(x, (D,))

    made = layer(normal(x) if norm == "pre" else x)
    added = x + made if residual else made
    return normal(added) if norm == "post" else added


def further(
    x: Tensor, generator: torch.Generator, how: tuple[bool, str, bool]
) -> dict[str, float]:
    """How distinct tokens are that go on through more blocks."""
    residual, norm, feed_forward = how
    found = {}
    for block in range(DEPTH + 1, FURTHER[-1] + 1):
        _, attend, work = sublayers(generator)
        x = step(x, attend, residual, norm)
        if feed_forward:
            x = step(x, work, residual, norm)
        if block in FURTHER:
            found[f"distinct {block}"] = power(distinct(x))
    return found


def run(
    seed: int, *, residual: bool, norm: str, feed_forward: bool
) -> dict[str, float]:
    """Forward and back once; every number is a power of ten."""
    generator = torch.Generator().manual_seed(seed)
    blocks = [sublayers(generator) for _ in range(DEPTH)]
    x = torch.randn((N, D), generator=generator, dtype=torch.float64)
    up = torch.randn((N, D), generator=generator, dtype=torch.float64)
    path = [x.requires_grad_()]
    for _, attend, work in blocks:
        x = step(x, attend, residual, norm)
        if feed_forward:
            x = step(x, work, residual, norm)
        path.append(x)
    queries = [W_q for W_q, _, _ in blocks]
    gradients = torch.autograd.grad((x * up).sum(), path[:-1] + queries)
    found = {f"distinct {i}": power(distinct(t)) for i, t in enumerate(path)}
    for i in range(DEPTH):
        found[f"path {i + 1}"] = power(gradients[i].norm().item())
        found[f"query {i + 1}"] = power(gradients[DEPTH + i].norm().item())
    how = residual, norm, feed_forward
    with torch.no_grad():
        return found | further(x, generator, how)
