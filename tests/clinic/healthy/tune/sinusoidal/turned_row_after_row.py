"""No angle but the first row's: every row is the last one, turned."""

import math

import torch


def position_table(rows, *, features):
    if features % 2:
        raise ValueError("features have to be even")
    half = features // 2
    step = [10000.0 ** (-i / half) for i in range(half)]
    ds, dc = [math.sin(a) for a in step], [math.cos(a) for a in step]
    s, c = [0.0] * half, [1.0] * half
    table = []
    for _ in range(rows):
        table.append(s + c)
        s, c = (
            [s[i] * dc[i] + c[i] * ds[i] for i in range(half)],
            [c[i] * dc[i] - s[i] * ds[i] for i in range(half)],
        )
    return torch.tensor(table, dtype=torch.float32)


PATIENT = position_table
FACTS = {"layout": "halves", "dtypes": ("float32",)}
INPUTS = {"rows": "int n", "features": "int 2*d"}
SIZES = {"n": (1, 120), "d": (2, 24)}
