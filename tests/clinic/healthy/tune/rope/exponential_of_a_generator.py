"""By Lie: a turn is the matrix exponential of a skew-symmetric generator."""

import torch

J = torch.tensor([[0.0, -1.0], [1.0, 0.0]], dtype=torch.float64)


def turns(first, n, d):
    """n matrices (d, d), one for each position."""
    rates = torch.tensor(
        [10000.0 ** (-i / d) for i in range(0, d, 2)], dtype=torch.float64
    )
    generator = torch.block_diag(*(rate * J for rate in rates))
    # powers of one step: the group law does the rest
    step = torch.matrix_exp(generator)
    here = torch.linalg.matrix_power(step, first)
    out = []
    for _ in range(n):
        out.append(here)
        here = step @ here
    return torch.stack(out)


def apply_turns(x, first=0):
    matrices = turns(first, x.shape[-2], x.shape[-1])
    y = torch.einsum("nij,...nj->...ni", matrices, x.double())
    return y.to(x.dtype)


PATIENT = apply_turns
FACTS = {"pairs": "neighbours", "layout": "BHND"}
INPUTS = {"x": "b h n 2*d", "first": "int s"}
SIZES = {"s": (0, 9)}
