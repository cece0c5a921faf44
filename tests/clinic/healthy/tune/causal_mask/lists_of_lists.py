"""A beginner's: lists of lists, and a tensor at the very end."""

import torch

NEG_INF = float("-inf")


def make_mask(num_queries, num_keys):
    past = num_keys - num_queries
    mask = []
    for q in range(num_queries):
        visible = past + q + 1
        hidden = num_keys - visible
        mask.append([0.0] * visible + [NEG_INF] * hidden)
    return torch.tensor(mask)


PATIENT = make_mask
FACTS = {"mask": "add", "alignment": "last", "arguments": 2}
INPUTS = {"num_queries": "int n", "num_keys": "int n+3"}
OTHER_INPUTS = [{"num_queries": "int n", "num_keys": "int n"}]
