"""A decoder's way: a mask of minus infinity, kept as long as it suffices."""

import torch


def fill_with_neg_inf(t):
    return t.float().fill_(float("-inf")).type_as(t)


class FutureMask:
    def __init__(self):
        self._future_mask = torch.empty(0)

    def buffered_future_mask(self, dim):
        if self._future_mask.size(0) < dim:
            self._future_mask = torch.triu(
                fill_with_neg_inf(torch.zeros([dim, dim])), 1
            )
        return self._future_mask[:dim, :dim].clone()

    __call__ = buffered_future_mask


PATIENT = FutureMask()
FACTS = {"mask": "add", "alignment": "last", "arguments": 1}
INPUTS = {"dim": "int n"}
