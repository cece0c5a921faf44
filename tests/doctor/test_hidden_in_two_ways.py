"""Layers that hide keys in two ways, each of which was asked alone."""

import functools
import math

import pytest
import torch
from torch import nn

from selfattn.doctor import examine

here = functools.partial(examine, kind="self-attention", time_limit=None)


class Hides(nn.Module):
    """Of three heads, with a mask, padding and a flag."""

    def __init__(self, slip=""):
        super().__init__()
        self.n_heads, self.slip = 3, slip
        self.query, self.key, self.value, self.out = (
            nn.Linear(12, 12) for _ in range(4)
        )

    def forward(self, x, mask=None, padding_mask=None, causal=False):
        q, k, v = (
            part(x).unflatten(-1, (3, -1)).transpose(1, 2)
            for part in (self.query, self.key, self.value)
        )
        scores = q @ k.mT / math.sqrt(q.shape[-1])
        n = x.shape[1]
        seen = torch.ones(n, n, dtype=torch.bool)
        if mask is not None:
            seen = mask
        if padding_mask is not None:
            real = padding_mask[:, None, None, :]
            seen = real if self.slip == "padding alone" else seen & real
        low = -1e9 if self.slip == "another number" else -torch.inf
        if causal:
            past = torch.ones(n, n).tril().bool()
            if self.slip == "flag alone" and padding_mask is not None:
                seen = past
            scores = scores.masked_fill(~past, low)
        scores = scores.masked_fill(~seen, -torch.inf)
        made = (scores.softmax(dim=-1) @ v).transpose(1, 2).flatten(2)
        return self.out(made)


TOLD = {
    "layout": "BND",
    "causal": False,
    "mask": "keep",
    "mask_axes": "NN",
    "padding": "keep",
    "empty_row": "nan",
    "n_heads": 3,
}


def test_what_hides_in_two_ways_at_once_is_sound():
    assert here(Hides(), **TOLD).passed
    assert here(Hides()).passed


@pytest.mark.parametrize(
    "slip", ["padding alone", "flag alone", "another number"]
)
def test_one_that_drops_the_other_is_not(slip):
    """It was healthy: no two of them were ever handed over at once."""
    report = here(Hides(slip), **TOLD)
    assert report.exit_code == 1, report


def test_who_takes_one_at_a_time_has_not_promised_both():
    class OneAtATime(Hides):
        def forward(self, x, mask=None, padding_mask=None, causal=False):
            ways = (mask is not None, padding_mask is not None, causal)
            if sum(ways) > 1:
                raise ValueError("one way to hide at a time")
            return super().forward(x, mask, padding_mask, causal)

    report = here(OneAtATime(), **TOLD)
    assert report.passed, report
