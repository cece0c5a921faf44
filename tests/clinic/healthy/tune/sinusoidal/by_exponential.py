"""Frequencies by an exponential; every second column."""

import math

import torch


def positional_encoding(max_len, d_model):
    pe = torch.zeros(max_len, d_model)
    position = torch.arange(0, max_len).unsqueeze(1).float()
    div_term = torch.exp(
        torch.arange(0, d_model, 2).float() * -(math.log(10000.0) / d_model)
    )
    pe[:, 0::2] = torch.sin(position * div_term)
    pe[:, 1::2] = torch.cos(position * div_term)
    return pe


PATIENT = positional_encoding
FACTS = {"layout": "pairs", "takes": [], "dtypes": ("float32",)}
INPUTS = {"max_len": "int n", "d_model": "int 2*d"}
SIZES = {"n": (1, 300), "d": (2, 24)}
