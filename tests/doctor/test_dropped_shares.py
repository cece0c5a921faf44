"""The share that a module drops in training, beside the one that was told."""

import pytest
import torch
from torch import nn

from selfattn import MultiHeadAttention
from selfattn.blocks import EncoderBlock
from selfattn.doctor import examine
from selfattn.doctor.deviations.training import shares_of

SAID = [(0, False), (0.3, True), (0.6, False), (0.1 + 0.2, True)]


class Untold(nn.Module):
    """Drops, and keeps no number that tells how much."""

    def __init__(self):
        super().__init__()
        self.inner = MultiHeadAttention(8, 2)
        self.register_buffer("keep", torch.tensor(0.7))

    def forward(self, x):
        if self.training:
            x = x * (torch.rand_like(x) < self.keep) / self.keep
        return self.inner(x)


@pytest.mark.parametrize(("share", "fits"), SAID)
@pytest.mark.parametrize(
    ("thing", "kind"),
    [
        (EncoderBlock(8, 2, 16, pre=True, dropout=0.3), "encoder-block"),
        (MultiHeadAttention(8, 2, dropout=0.3), "self-attention"),
        (nn.TransformerEncoderLayer(8, 2, 16, 0.3), "encoder-block"),
    ],
)
def test_a_share_that_was_told_is_compared(thing, kind, share, fits):
    """Any share was healthy, and 0 counted as nothing that was said."""
    report = examine(thing.eval(), kind=kind, time_limit=None, dropout=share)
    assert report.passed == fits, str(report)
    if not fits:
        assert report.mistake.name == "another share is dropped"


def test_who_keeps_no_share_is_asked_whether_it_drops():
    told = {"kind": "self-attention", "time_limit": None, "dropout": 0.3}
    assert shares_of(Untold()) == {0.0}
    assert examine(Untold().eval(), **told).passed
    still = examine(MultiHeadAttention(8, 2).eval(), **told)
    assert still.mistake.name == "dropout never begins"


def test_shares_are_numbers_under_names_that_say_so():
    thing = nn.Sequential(nn.Dropout(0.25), nn.Linear(2, 2))
    thing.drop_rate, thing.dropped, thing.p = 0.5, True, 0.75
    assert shares_of(thing) == {0.25, 0.5}
