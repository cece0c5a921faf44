"""A translated tutorial: angles of all cells, then sines and cosines."""

import numpy as np
import torch


def get_angles(pos, i, d_model):
    angle_rates = 1 / np.power(10000.0, (2 * (i // 2)) / d_model)
    return pos * angle_rates


def positional_encoding(position, d_model):
    angle_rads = get_angles(
        np.arange(position)[:, np.newaxis],
        np.arange(d_model)[np.newaxis, :],
        d_model,
    )

    # apply sin to even indices in the array; 2i
    angle_rads[:, 0::2] = np.sin(angle_rads[:, 0::2])

    # apply cos to odd indices in the array; 2i+1
    angle_rads[:, 1::2] = np.cos(angle_rads[:, 1::2])

    return torch.tensor(angle_rads, dtype=torch.float32)


PATIENT = positional_encoding
FACTS = {"layout": "pairs", "takes": ["long"], "dtypes": ("float32",)}
INPUTS = {"position": "int n", "d_model": "int d"}
SIZES = {"n": (1, 300), "d": (2, 24)}
