"""The doctor on blocks: their own parts, joined as they should be."""

import pytest
import torch
from torch import nn

from selfattn.blocks import DecoderBlock, EncoderBlock
from selfattn.doctor import complaints, examine
from selfattn.doctor.kinds.blocks.decoder import kind as decoder_block
from selfattn.doctor.kinds.blocks.encoder import kind as encoder_block

D = 8


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


def healthy():
    for first in (False, True):
        for batch_first in (False, True):
            options = {"norm_first": first, "batch_first": batch_first}
            yield (
                "encoder-block",
                nn.TransformerEncoderLayer(D, 2, 11, **options),
            )
            yield (
                "decoder-block",
                nn.TransformerDecoderLayer(D, 2, 11, **options),
            )
        yield "encoder-block", EncoderBlock(D, 2, 16, pre=first)
        yield "decoder-block", DecoderBlock(D, 2, 16, pre=first)


@pytest.mark.parametrize(("kind", "block"), [*healthy()])
def test_a_healthy_block_is_healthy(kind, block):
    before = {n: p.clone() for n, p in block.named_parameters()}
    report = examine(block, kind=kind, time_limit=None)
    assert report.passed and not report.not_asked, report
    after = dict(block.named_parameters())
    assert all(torch.equal(before[n], after[n]) for n in before)
    assert block.training


@pytest.mark.parametrize("order", ["pre", "post"])
@pytest.mark.parametrize("module", [encoder_block, decoder_block])
def test_every_named_mistake_is_named_in_the_patients_own_parts(module, order):
    """And none of them is like another, or like the solution."""
    block, _ = module.KIND.examples()[""]
    seen = module.KIND.read(block, {}).facts
    facts = {**seen, "order": order}
    prepared = module.KIND.prepare(block, facts)
    exercise = module.KIND.exercise(prepared, facts)
    assert complaints(exercise) == []
    assert len(exercise.mistakes) >= 18


class Turning(EncoderBlock):
    """A block whose mask says who may not look, around parts that say who
    may: it was called ill, since its parts were given its own masks.
    """

    def forward(self, x, attn_mask=None):
        mask = None if attn_mask is None else ~attn_mask
        return super().forward(x, mask=mask)


class Forgetting(EncoderBlock):
    """The same, but that it hands its mask on as it is."""

    def forward(self, x, attn_mask=None):
        return super().forward(x, mask=attn_mask)


@pytest.mark.parametrize("told", [{}, {"mask": "block"}])
def test_a_block_may_turn_the_mask_for_its_attention(told):
    block = Turning(D, 2, 16, pre=True)
    report = examine(block, kind="encoder-block", time_limit=None, **told)
    assert report.passed, report


def test_a_block_that_forgets_to_turn_its_mask_is_told_so():
    block = Forgetting(D, 2, 16, pre=True)
    told = {"kind": "encoder-block", "time_limit": None}
    assert examine(block, mask="keep", **told).passed
    report = examine(block, mask="block", **told)
    assert report.mistake.name == "mask upside down"


class Block(nn.Module):
    """A block as many write it; those below are ill."""

    def __init__(self, batch_first=True):
        super().__init__()
        self.attn = nn.MultiheadAttention(D, 2, batch_first=batch_first)
        self.ln_1 = nn.LayerNorm(D)
        self.ln_2 = nn.LayerNorm(D)
        self.mlp = nn.Sequential(nn.Linear(D, 16), nn.GELU(), nn.Linear(16, D))

    def attend(self, x, mask):
        return self.attn(x, x, x, attn_mask=mask)[0]

    def forward(self, x, attn_mask=None):
        x = x + self.attend(self.ln_1(x), attn_mask)
        return x + self.mlp(self.ln_2(x))


class Overwritten(Block):
    def forward(self, x, attn_mask=None):
        x = self.ln_1(x)
        x = x + self.attend(x, attn_mask)
        x = self.ln_2(x)
        return x + self.mlp(x)


class Unused(Block):
    def forward(self, x, attn_mask=None):
        x = x + self.attend(self.ln_1(x), attn_mask)
        h = self.ln_2(x)  # noqa: F841
        return x + self.mlp(x)


class Deaf(Block):
    def forward(self, x, attn_mask=None):
        x = x + self.attend(self.ln_1(x), None)
        return x + self.mlp(self.ln_2(x))


class Forgetful(Block):
    def forward(self, x, attn_mask=None):
        h = x + self.attend(self.ln_1(x), attn_mask)
        return x + self.mlp(self.ln_2(h))


@pytest.mark.parametrize(
    ("block", "name"),
    [
        (Overwritten(), "norm on the path"),
        (Unused(), "second norm not used"),
        (Deaf(), "mask not passed on"),
        (Forgetful(), "residual from the start"),
        (Block(batch_first=False), "texts exchanged with tokens"),
    ],
)
def test_an_ill_block_is_told_what_it_lacks(block, name):
    facts = {"order": "pre", "mask": "block"}
    if name.startswith("texts"):
        facts["takes"] = []  # its mask would have the wrong size, too
        facts["layout"] = "BND"  # else it may be meant
    report = examine(block, kind="encoder-block", time_limit=None, **facts)
    assert report.mistake is not None, report
    assert report.mistake.name == name


def test_the_order_and_the_mask_are_found_out():
    report = examine(Block(), kind="encoder-block", time_limit=None)
    assert report.passed
    assert report.facts["order"] == "pre"
    assert report.facts["mask"] == "block"


def test_a_block_that_says_otherwise_is_held_to_it():
    report = examine(
        Block(), kind="encoder-block", time_limit=None, mask="keep"
    )
    assert report.mistake is not None
    assert report.mistake.name == "mask upside down"


@pytest.mark.parametrize(
    ("thing", "words"),
    [
        (nn.Linear(D, D), "2 norms, but I find 0"),
        (nn.LayerNorm, "hand over a module"),
        (
            nn.Sequential(nn.LayerNorm(D), nn.LayerNorm(D)),
            "one attention, but I find 0",
        ),
    ],
)
def test_what_cannot_be_found_is_asked_for(thing, words):
    report = examine(thing, kind="encoder-block", time_limit=None)
    assert not report.passed
    assert words in report.question


class Odd(nn.Module):
    """Sound, but nothing in it is called as elsewhere."""

    def __init__(self):
        super().__init__()
        self.inside = Block()
        self.odd, self.inside.mlp = self.inside.mlp, None

    def forward(self, x):
        x = x + self.inside.attend(self.inside.ln_1(x), None)
        return x + self.odd(self.inside.ln_2(x))


def test_parts_may_be_named():
    """Its network is found where it runs, under whatever name, or told."""
    assert examine(Odd(), kind="encoder-block", time_limit=None).passed
    named = {"attention": "inside.attn", "norms": ["inside.ln_1"]}
    lost = examine(Odd(), kind="encoder-block", time_limit=None, **named)
    assert not lost.passed
    named["norms"].append("inside.ln_2")
    seen = examine(Odd(), kind="encoder-block", time_limit=None, **named)
    assert seen.passed and not any("joins" in n for n in seen.not_asked)
    named["feed_forward"] = "odd"
    found = examine(Odd(), kind="encoder-block", time_limit=None, **named)
    assert found.passed, found
    assert found.not_asked == {"a mask": "it takes none"}
