"""Called with the width first; alternating by the parity of the column."""

import torch


def get_table(hidden, n_position):
    column = torch.arange(hidden)
    exponent = 2 * torch.div(column, 2, rounding_mode="floor") / hidden
    position = torch.arange(n_position, dtype=torch.float64)[:, None]
    angle = position / 10000.0 ** exponent.double()
    return torch.where(column % 2 == 0, angle.sin(), angle.cos()).float()


PATIENT = get_table
FACTS = {"layout": "pairs", "width_first": True, "dtypes": ("float32",)}
INPUTS = {"hidden": "int d", "n_position": "int n"}
SIZES = {"n": (1, 300), "d": (2, 24)}
