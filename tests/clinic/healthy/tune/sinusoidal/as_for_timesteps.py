"""A diffusion model's function of steps, called with all there are."""

import math

import torch


def get_timestep_embedding(
    timesteps,
    embedding_dim,
    flip_sin_to_cos=False,
    downscale_freq_shift=0.0,
    max_period=10000,
):
    assert timesteps.dim() == 1, "timesteps should be one-dimensional"
    half_dim = embedding_dim // 2
    exponent = -math.log(max_period) * torch.arange(half_dim).float()
    exponent = exponent / (half_dim - downscale_freq_shift)
    emb = timesteps[:, None].float() * torch.exp(exponent)[None, :]
    emb = torch.cat([torch.sin(emb), torch.cos(emb)], dim=-1)
    if flip_sin_to_cos:
        emb = torch.cat([emb[:, half_dim:], emb[:, :half_dim]], dim=-1)
    if embedding_dim % 2 == 1:
        emb = torch.nn.functional.pad(emb, (0, 1))
    return emb


def embed_positions(num_positions, embedding_dim):
    return get_timestep_embedding(torch.arange(num_positions), embedding_dim)


PATIENT = embed_positions
FACTS = {"layout": "halves", "takes": [], "dtypes": ("float32",)}
INPUTS = {"num_positions": "int n", "embedding_dim": "int 2*d"}
SIZES = {"n": (1, 200), "d": (2, 24)}
