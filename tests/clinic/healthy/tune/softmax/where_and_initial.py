"""Ported: an axis, and where to look; elsewhere nothing is left but zeros."""

import torch


def softmax(x, axis=-1, where=None):
    if where is None:
        where = torch.ones_like(x, dtype=torch.bool)
    minus_inf = x.new_full((), -torch.inf)
    x_max = torch.where(where, x, minus_inf).amax(axis, keepdim=True)
    # an empty row has no largest
    x_max = torch.where(x_max == minus_inf, 0, x_max).detach()
    unnormalized = torch.where(where, x - x_max, minus_inf).exp()
    total = unnormalized.sum(axis, keepdim=True)
    # the largest alone makes one of it, unless there is none
    return unnormalized / total.clamp(min=1.0)


PATIENT = softmax
FACTS = {"mask": "keep", "empty_row": "zeros"}
INPUTS = {"x": "b n m", "where?": "keep b n m"}
LOUDEST = 1000
