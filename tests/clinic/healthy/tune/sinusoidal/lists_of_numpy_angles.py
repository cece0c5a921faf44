"""NumPy: a list of angles for each position, then every second column."""

import numpy as np
import torch


def get_sinusoid_encoding_table(n_position, d_hid):
    def angles_of(position):
        return [
            position / np.power(10000, 2 * (hid_j // 2) / d_hid)
            for hid_j in range(d_hid)
        ]

    table = np.array([angles_of(pos_i) for pos_i in range(n_position)])
    table[:, 0::2] = np.sin(table[:, 0::2])  # dim 2i
    table[:, 1::2] = np.cos(table[:, 1::2])  # dim 2i+1
    return torch.FloatTensor(table)


PATIENT = get_sinusoid_encoding_table
FACTS = {"layout": "pairs", "dtypes": ("float32",)}
INPUTS = {"n_position": "int n", "d_hid": "int d"}
SIZES = {"n": (1, 120), "d": (2, 24)}
