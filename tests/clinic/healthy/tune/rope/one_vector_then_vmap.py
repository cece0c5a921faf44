"""Written for one vector at one position, then mapped over all axes."""

import torch
from torch import vmap

BASE = 10_000.0


def rotate_vector(vec, pos):
    (dim,) = vec.shape
    halves = vec.reshape(2, dim // 2)
    inv_freq = BASE ** -(torch.arange(dim // 2, dtype=torch.float64) * 2 / dim)
    phase = pos.double() * inv_freq
    sin, cos = torch.sin(phase), torch.cos(phase)
    turn = torch.stack([torch.stack([cos, -sin]), torch.stack([sin, cos])])
    return torch.einsum("ijf,jf->if", turn.to(vec.dtype), halves).reshape(dim)


over_tokens = vmap(rotate_vector, in_dims=(0, 0))
over_heads = vmap(over_tokens, in_dims=(1, None), out_dims=1)
over_batch = vmap(over_heads, in_dims=(0, None))


def rotary_embedding(inputs, positions):
    """Inputs are [batch, length, heads, head_dim], positions [length]."""
    return over_batch(inputs, positions)


PATIENT = rotary_embedding
FACTS = {
    "pairs": "halves",
    "layout": "BNHD",
    "told": "positions",
    "name": "positions",
}
INPUTS = {"inputs": "b n h 2*d", "positions": "range n"}
