"""NumPy makes the table in double precision; an odd width loses a cosine."""

import numpy as np
import torch


def make_pe(n_positions: int, d_model: int) -> torch.FloatTensor:
    n_sines = -(-d_model // 2)  # rounded up
    even = 2 * np.arange(n_sines, dtype=np.float64)
    periods = np.power(1e4, even / d_model)
    angles = np.divide.outer(np.arange(n_positions), periods)
    pe = np.dstack([np.sin(angles), np.cos(angles)])
    pe = pe.reshape(n_positions, -1)[:, :d_model]
    return torch.from_numpy(pe.astype(np.float32))


PATIENT = make_pe
FACTS = {"layout": "pairs", "dtypes": ("float32",)}
INPUTS = {"n_positions": "int n", "d_model": "int d"}
SIZES = {"n": (1, 300), "d": (2, 24)}
