"""What a mask says to a block whose attention lies in its own forward.

Its numbers are compared with those of its own steps, which read a mask as it
does: so all meanings fit, and the first was taken. A mask that is added was
then handed over as True and False, and "masked with too small a number" was
the name of its mistake.
"""

import functools
import math

import pytest
import torch
from torch import nn

from selfattn.doctor import examine

here = functools.partial(examine, kind="encoder-block", time_limit=None)


def added(scores, mask):
    return scores + mask


def kept(scores, mask):
    return scores.masked_fill(~mask, -torch.inf)


def blocked(scores, mask):
    return scores.masked_fill(mask, -torch.inf)


def too_small(scores, mask):
    return scores.masked_fill(~mask, -1.0)


class Flat(nn.Module):
    """A block that works out its attention line by line."""

    def __init__(self, hide, d=12, n_heads=3):
        super().__init__()
        self.hide, self.cut = hide, n_heads
        self.wq, self.wk, self.wv, self.wo = (
            nn.Linear(d, d) for _ in range(4)
        )
        self.first, self.last = nn.Linear(d, 24), nn.Linear(24, d)
        self.norm1, self.norm2 = nn.LayerNorm(d), nn.LayerNorm(d)

    def forward(self, src, src_mask=None):
        q, k, v = (
            one(src).unflatten(-1, (self.cut, -1)).transpose(1, 2)
            for one in (self.wq, self.wk, self.wv)
        )
        scores = q @ k.mT / math.sqrt(q.shape[-1])
        if src_mask is not None:
            scores = self.hide(scores, src_mask)
        said = (scores.softmax(dim=-1) @ v).transpose(1, 2).flatten(2)
        src = self.norm1(src + self.wo(said))
        return self.norm2(src + self.last(self.first(src).relu()))


MEANT = [(added, "add"), (kept, "keep"), (blocked, "block")]


@pytest.mark.parametrize(("hide", "meaning"), MEANT)
def test_what_a_mask_says_is_heard_where_no_number_tells(hide, meaning):
    report = here(Flat(hide))
    assert report.passed, report
    assert report.facts["mask"] == meaning
    other = "block" if meaning == "keep" else "keep"
    assert here(Flat(hide), mask=other).exit_code == 1


def test_what_hides_nothing_is_still_wrong():
    report = here(Flat(too_small))
    assert report.mistake.name == "masked with too small a number"
