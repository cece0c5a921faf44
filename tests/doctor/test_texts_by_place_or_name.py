"""Which arguments of a block take its texts, and what else it is handed."""

import functools

import pytest
import torch
from torch import nn

from selfattn.doctor import examine
from selfattn.doctor.kinds.blocks.encoder.calling import adapt, read
from selfattn.doctor.kinds.blocks.handing_over import by_place_or_name
from tests.doctor.blocks_of_their_own import D, Mixing, network

encoder = functools.partial(examine, kind="encoder-block", time_limit=None)
decoder = functools.partial(examine, kind="decoder-block", time_limit=None)


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


def behind_a_step(x, memory, *, step): ...
def before_a_step(x, *, step, memory): ...
def beside_a_cache(x, *, cache=None, memory=None): ...
def beside_a_mask(x, mask=None, *, memory=None): ...
def behind_a_mask(x, mask, memory): ...
def behind_places(x, places, *, memory): ...
def of_places(x, image, x_places, image_places): ...
def of_another_name(x, other=None): ...
def of_its_name(x, cache=None, memory=None): ...
def under_masks(padded, padding_mask, memory): ...
def of_any(*texts): ...
def of_names_alone(*, x, source): ...


X_BY_PLACE = ["X"], {"memory": "C"}


@pytest.mark.parametrize(
    ("called", "handed"),
    [
        (behind_a_step, (["X", "C"], {})),
        (before_a_step, X_BY_PLACE),
        (beside_a_cache, X_BY_PLACE),
        (beside_a_mask, X_BY_PLACE),
        (behind_a_mask, X_BY_PLACE),
        (behind_places, X_BY_PLACE),
        (of_places, (["X", "C"], {})),
        (of_another_name, (["X", "C"], {})),
        (of_its_name, X_BY_PLACE),
        (under_masks, X_BY_PLACE),
        (of_any, (["X", "C"], {})),
        (of_names_alone, ([], {"x": "X", "source": "C"})),
    ],
)
def test_a_context_goes_where_it_belongs(called, handed):
    """It was handed over as a step, a cache or a mask."""
    placed, named = by_place_or_name(called, ["X", "C"], {})
    assert ([*placed], named) == handed


@pytest.mark.parametrize(
    "called", [behind_a_step, before_a_step, beside_a_cache, beside_a_mask]
)
def test_a_text_alone_is_the_first(called):
    placed, named = by_place_or_name(called, ["X"], {"mask": "M"})
    assert ([*placed], named) == (["X"], {"mask": "M"})


class Block(nn.Module):
    """A decoder block, whichever of its arguments its context is."""

    def __init__(self, forgets=False):
        super().__init__()
        self.attn, self.cross_attn = Mixing(), Mixing()
        self.ffn, self.forgets = network(), forgets
        self.one, self.two, self.three = (nn.LayerNorm(D) for _ in range(3))

    def joined(self, x, context):
        x = x + self.attn(self.one(x), past=True)
        x = x + self.cross_attn(self.two(x), context)
        said = self.ffn(self.three(x))
        return said if self.forgets else x + said


class WithAStep(Block):
    def forward(self, x, memory, *, step):
        return self.joined(x, memory)


class WithACache(Block):
    def forward(self, x, *, cache=None, memory=None):
        return self.joined(x, memory)


class WithAMask(Block):
    def forward(self, x, mask=None, *, memory=None):
        return self.joined(x, memory)


@pytest.mark.parametrize("of", [WithAStep, WithACache, WithAMask])
def test_a_decoder_is_found_by_what_it_is_handed(of):
    report = decoder(of(), order="pre")
    assert report.passed, report
    wrong = decoder(of(forgets=True), order="pre")
    assert wrong.mistake.name == "no residual around the feed forward"


class Lying(nn.Module):
    """An encoder block whose maps lie in it; it counts how often it ran."""

    def __init__(self, forgets=False):
        super().__init__()
        self.one, self.two = nn.LayerNorm(D), nn.LayerNorm(D)
        self.qkv, self.proj = nn.Linear(D, 3 * D), nn.Linear(D, D)
        self.up, self.down = nn.Linear(D, 20), nn.Linear(20, D)
        self.forgets, self.times = forgets, 0

    def joined(self, x, places):
        self.times += 1
        q, k, v = (
            part.unflatten(-1, (2, -1)).transpose(1, 2)
            for part in self.qkv(self.one(x + places)).chunk(3, dim=-1)
        )
        said = nn.functional.scaled_dot_product_attention(q, k, v)
        x = x + self.proj(said.transpose(1, 2).flatten(2))
        said = self.down(self.up(self.two(x)).relu())
        return said if self.forgets else x + said


class OfX(Lying):
    def forward(self, x):
        return self.joined(x, 0)


class OfPlaces(Lying):
    """It wants to be told of places, and has no use for them."""

    def forward(self, x, places):
        return self.joined(x, 0)


class WithPlaces(Lying):
    def forward(self, x, places):
        return self.joined(x, places)


class OnItsPath(Lying):
    def forward(self, x, first):
        return self.joined(x + first, 0)


@pytest.mark.parametrize("of", [OfX, OfPlaces])
def test_what_a_block_wants_besides_is_handed_over_at_once(of):
    """It was called twice, and no numbers could be followed through it."""
    block = of().eval()
    call = adapt(block, {"mask": "keep", **read(block, {}).facts})
    call(torch.randn(2, 5, D))
    assert block.times == 1
    report = encoder(of())
    assert report.passed, report
    assert report.facts == {"order": "pre"}


@pytest.mark.parametrize("of", [OfX, OfPlaces])
def test_what_it_does_not_use_may_not_excuse_its_path(of):
    report = encoder(of(forgets=True))
    assert report.mistake.name == "no residual around the feed forward"


def test_what_it_uses_may_lie_on_its_path():
    assert "path" not in read(OfPlaces(), {}).facts
    for of in (WithPlaces, OnItsPath):
        assert read(of(), {}).facts["path"] == "free"
    assert encoder(OnItsPath()).passed


class OfTwoMasks(Block):
    """Both masks must be told, and are masks, and nothing besides."""

    def __init__(self, forgets=False):
        super().__init__(forgets)
        self.attn, self.cross_attn = (
            nn.MultiheadAttention(D, 2, batch_first=True) for _ in "12"
        )

    def forward(self, x, memory, src_mask, tgt_mask):
        y = self.one(x)
        x = x + self.attn(y, y, y, attn_mask=~tgt_mask)[0]
        y = self.two(x)
        x = x + self.cross_attn(y, memory, memory, attn_mask=~src_mask)[0]
        said = self.ffn(self.three(x))
        return said if self.forgets else x + said


@pytest.mark.parametrize("told", [{}, {"formula": "own", "mask": "keep"}])
def test_masks_that_must_be_told_may_not_excuse_a_path(told):
    report = decoder(OfTwoMasks(), **told)
    assert report.passed, report
    wrong = decoder(OfTwoMasks(forgets=True), **told)
    assert wrong.exit_code == 1, wrong
    assert wrong.mistake.name == "no residual around the feed forward"
