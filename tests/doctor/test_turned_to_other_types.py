"""A module that was turned to another number type is what it was before.

A block in float64 could not be called, it was said, whose texts were float32;
a decoder with a cache was unlike the usual on all probes.
"""

import functools

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from selfattn import MultiHeadAttention
from selfattn.blocks import DecoderBlock
from selfattn.doctor import examine
from selfattn.doctor.patient import in_float32
from selfattn.positions import sinusoidal

here = functools.partial(examine, time_limit=None)


class Block(nn.Module):
    """A block of PyTorch's parts; its first norm may not be called."""

    def __init__(self, normed=True):
        super().__init__()
        self.attention = nn.MultiheadAttention(12, 3, batch_first=True)
        self.norms = nn.ModuleList(nn.LayerNorm(12) for _ in range(2))
        self.network = nn.Sequential(
            nn.Linear(12, 24), nn.GELU(), nn.Linear(24, 12)
        )
        self.normed = normed

    def forward(self, x):
        y = self.norms[0](x) if self.normed else x
        x = x + self.attention(y, y, y)[0]
        return x + self.network(self.norms[1](x))


class Keeping(nn.Module):
    """A decoder of one head that keeps its keys and values."""

    def __init__(self):
        super().__init__()
        self.maps = nn.Linear(8, 24)

    def forward(self, x, cache):
        q, *kept = self.maps(x).chunk(3, dim=-1)
        if cache is not None:
            pairs = zip(cache, kept, strict=True)
            kept = [torch.cat(pair, dim=1) for pair in pairs]
        n, m = x.shape[1], kept[0].shape[1]
        seen = torch.ones(n, m, dtype=torch.bool).tril(m - n)
        return F.scaled_dot_product_attention(q, *kept, seen), kept


class Learned(nn.Module):
    """A table that learns."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(32, 8)

    def forward(self, x):
        return x + self.table.weight[: x.shape[1]]


PATIENTS = {
    "encoder-block": Block,
    "decoder-block": lambda: DecoderBlock(12, 3, 24, pre=True),
    "cached-decoder": Keeping,
    "positions": Learned,
    "self-attention": lambda: MultiHeadAttention(12, 3),
    "layer-norm": lambda: nn.LayerNorm(8),
}
TYPES = ("double", "half", "bfloat16")


@pytest.mark.parametrize("turn", TYPES)
@pytest.mark.parametrize("kind", PATIENTS)
def test_what_is_turned_is_examined_as_it_was(kind, turn):
    torch.manual_seed(0)
    patient = PATIENTS[kind]()
    usual = here(patient, kind=kind)
    assert usual.exit_code == 0, usual
    getattr(patient, turn)()
    before = patient.state_dict()
    assert str(here(patient, kind=kind)) == str(usual)
    types = {x.dtype for x in patient.state_dict().values()}
    assert types == {x.dtype for x in before.values()} != {torch.float32}


def test_what_is_wrong_in_a_block_is_wrong_in_another_type():
    torch.manual_seed(0)
    usual = here(Block(normed=False), kind="encoder-block")
    torch.manual_seed(0)
    turned = here(Block(normed=False).double(), kind="encoder-block")
    assert usual.exit_code == 1
    assert str(turned) == str(usual)


class Placed(nn.Module):
    """Its table is of a type that nobody asked for."""

    def __init__(self):
        super().__init__()
        self.register_buffer("table", sinusoidal(50, 8).double())

    def forward(self, x):
        return x + self.table[: x.shape[1]]


def test_who_holds_one_thing_of_another_type_was_not_turned():
    report = here(Placed(), kind="positions")
    assert report.mistake.name == "another type returned"
    mixed = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2).double())
    for thing in (mixed, nn.Linear(2, 2), nn.Identity(), len):
        assert in_float32(thing) is thing
