"""A kernel's way: powers of two, with the logarithm of e in the scores."""

import torch

LOG2_E = 1.44269504088896340736


def softmax_exp2(scores):
    qk = scores * LOG2_E
    row_max, _ = torch.max(qk, dim=-1)
    p = torch.exp2(qk - row_max[..., None])
    row_sum = torch.sum(p, dim=-1)
    return p / row_sum[..., None]


PATIENT = softmax_exp2
FACTS = {"empty_row": "nan", "dtypes": ("float64", "float32")}
INPUTS = {"scores": "b n m"}
LOUDEST = 100
