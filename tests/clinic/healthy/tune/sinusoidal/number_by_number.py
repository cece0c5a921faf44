"""Two loops, as the formula is written; odd widths, too."""

import math

import torch


def encoding(n, d_model):
    table = torch.zeros(n, d_model)
    for pos in range(n):
        for i in range(0, d_model, 2):
            angle = pos / 10000 ** (i / d_model)
            table[pos, i] = math.sin(angle)
            if i + 1 < d_model:
                table[pos, i + 1] = math.cos(angle)
    return table


PATIENT = encoding
FACTS = {"layout": "pairs", "dtypes": ("float32",)}
INPUTS = {"n": "int n", "d_model": "int d"}
SIZES = {"n": (1, 60), "d": (2, 24)}
