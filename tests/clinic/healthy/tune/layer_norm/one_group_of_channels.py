"""A vision person: tokens are images of one pixel, channels one group."""

from collections import OrderedDict

import torch.nn.functional as F
from torch import nn


class FoldRows(nn.Module):
    """Applies what it holds to (rows, channels), then unfolds."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, tokens):
        lead = tokens.shape[:-1]
        flat = tokens.reshape(-1, tokens.shape[-1])
        return self.inner(flat).reshape(*lead, -1)


class SingleGroupNorm(nn.GroupNorm):
    """One group of all channels is layer normalisation, by another name."""

    def __init__(self, channels, eps=1e-6):
        super().__init__(num_groups=1, num_channels=channels, eps=eps)

    def forward(self, pixels):
        return F.group_norm(
            pixels, self.num_groups, self.weight, self.bias, self.eps
        )


def token_norm(channels, eps=1e-6):
    norm = SingleGroupNorm(channels, eps=eps)
    return nn.Sequential(OrderedDict(tokens=FoldRows(norm)))


PATIENT = token_norm(5)
FACTS = {"eps": 1e-6, "dtypes": ("float64", "float32", "bfloat16")}
INPUTS = {"input": "b n 5"}
OTHER_INPUTS = [{"input": "n 5"}, {"input": "b h n 5"}]
