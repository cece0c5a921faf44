"""Blocks that are handed their texts in other ways, and right all the same.

Contexts by keyword alone, or of another width than x; what a block wants
beside its texts; tokens first, inside or outside; queries that alone are
normed; and parts that are joined in no way that the doctor knows.
"""

import functools

import pytest
import torch
from torch import nn

from selfattn.doctor import examine
from tests.doctor.blocks_of_their_own import D, Mixing, network

encoder = functools.partial(examine, kind="encoder-block", time_limit=None)
decoder = functools.partial(examine, kind="decoder-block", time_limit=None)


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


class Keywords(nn.Module):
    """A context of seven features, which is told by its name alone."""

    def __init__(self, d_context=7, forgets=False):
        super().__init__()
        self.attn = Mixing()
        self.cross_attn = Mixing(d_context=d_context)
        self.ffn, self.forgets = network(), forgets
        self.one, self.two, self.three = (nn.LayerNorm(D) for _ in range(3))

    def forward(self, x, *, source):
        x = x + self.attn(self.one(x), past=True)
        said = self.cross_attn(self.two(x), source)
        x = said if self.forgets else x + said
        return x + self.ffn(self.three(x))


class Unnamed(Keywords):
    """Neither attention has a name that tells, and the context is a place."""

    def __init__(self):
        super().__init__()
        self.xattn = self.cross_attn
        del self.cross_attn

    def forward(self, x, y):
        x = x + self.attn(self.one(x), past=True)
        x = x + self.xattn(self.two(x), y)
        return x + self.ffn(self.three(x))


NAMED = {
    "order": "pre",
    "self_attention": "attn",
    "cross_attention": "cross_attn",
    "norms": ["one", "two", "three"],
}


@pytest.mark.parametrize("told", [{}, NAMED])
def test_a_context_may_be_told_by_its_name_alone(told):
    report = decoder(Keywords(), **told)
    assert report.passed, report
    wrong = decoder(Keywords(forgets=True), **told)
    name = "no residual around the cross attention"
    assert wrong.mistake.name == name, wrong


def test_which_attention_hears_a_context_is_read_off_at_any_width():
    report = decoder(Unnamed())
    assert report.passed, report


class Uncallable(Keywords):
    def forward(self, x, *, source):
        raise ValueError("not today")


def test_a_block_that_cannot_be_called_is_no_trouble_of_the_doctors():
    report = decoder(Uncallable(), **NAMED)
    assert not report.trouble, report
    assert report.exit_code != 0


class First(nn.Module):
    """The first embedding comes in again, and must be handed over."""

    def __init__(self, all_of_it=False):
        super().__init__()
        self.attn, self.mlp = Mixing(), network()
        self.norm1, self.norm2 = nn.LayerNorm(D), nn.LayerNorm(D)
        self.share, self.past = nn.Parameter(torch.ones(2)), not all_of_it

    def forward(self, x, x0):
        x = self.share[0] * x + self.share[1] * x0
        x = x + self.attn(self.norm1(x), past=self.past)
        return x + self.mlp(self.norm2(x))


OWN = {"formula": "own", "layout": "BND"}


def test_what_a_block_wants_besides_may_be_its_text_again():
    report = encoder(First(), causal=True, **OWN)
    assert report.passed, report
    wrong = encoder(First(all_of_it=True), causal=True, **OWN)
    assert wrong.exit_code == 1, wrong


class BothWays(nn.Module):
    """Tokens hear a picture, and it hears them; places are told to both."""

    def __init__(self, idle=False):
        super().__init__()
        self.self_attn, self.to_image = Mixing(), Mixing()
        self.to_tokens, self.mlp, self.idle = Mixing(), network(), idle
        self.norms = nn.ModuleList(nn.LayerNorm(D) for _ in range(4))

    def forward(self, x, image, x_places, image_places):
        a, b, c, d = self.norms
        x = a(x + self.self_attn(x + x_places))
        x = b(x + self.to_image(x + x_places, image + image_places))
        x = c(x + self.mlp(x))
        said = self.to_tokens(image + image_places, x)
        return x, d(image if self.idle else image + said)


def test_a_part_may_work_for_what_comes_out_besides():
    report = decoder(BothWays(), causal=False, **OWN)
    assert report.passed, report
    wrong = decoder(BothWays(idle=True), causal=False, **OWN)
    assert wrong.exit_code == 1, wrong


class NormedQueries(nn.Module):
    """Queries alone are normed, and go on so; PyTorch has tokens first."""

    def __init__(self, turned=True):
        super().__init__()
        self.norm, self.last = nn.LayerNorm(D), nn.LayerNorm(D)
        self.attn, self.turned = nn.MultiheadAttention(D, 2), turned
        self.ffn = network()

    def forward(self, x):
        x = x.transpose(0, 1) if self.turned else x
        q = self.norm(x)
        later = torch.ones(len(x), len(x)).triu(1).bool()
        x = q + self.attn(q, x, x, attn_mask=later)[0]
        x = x.transpose(0, 1) if self.turned else x
        x = self.last(x)
        return x + self.ffn(x)


@pytest.mark.parametrize(
    "told", [{}, {"formula": "own", "order": "pre", "causal": True}]
)
def test_queries_alone_may_be_normed(told):
    report = encoder(NormedQueries(), **told)
    assert report.passed, report


class TokensFirst(nn.Module):
    """PyTorch's layer has tokens first, and so has what it lies in."""

    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(D), nn.LayerNorm(D)
        self.attn, self.ff = nn.MultiheadAttention(D, 2), network()

    def forward(self, x):
        x = self.norm1(x + self.attn(x, x, x)[0])
        return self.norm2(x + self.ff(x))


def test_of_whom_nothing_is_told_tokens_may_come_first():
    report = encoder(TokensFirst())
    assert report.passed, report
    assert report.facts["layout"] == "NBD"
    wrong = encoder(TokensFirst(), layout="BND", order="post")
    assert "exchanged" in wrong.mistake.name


class Scaled(nn.Module):
    """Its path is multiplied before what a sublayer says is added."""

    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(D), nn.LayerNorm(D)
        self.attn, self.ff = Mixing(), network()

    def forward(self, x):
        x = self.norm1(1.7 * x + self.attn(x))
        return self.norm2(1.7 * x + self.ff(x))


def test_a_block_joined_in_its_own_way_is_not_accused_of_nothing_told():
    report = encoder(Scaled())
    assert report.exit_code in (0, 2), report
    assert "in no way that I know" in str(report)


class Behind(nn.Module):
    """What a sublayer says is normed, and added."""

    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(D), nn.LayerNorm(D)
        self.attn, self.ff = Mixing(), network()

    def forward(self, x):
        x = x + self.norm1(self.attn(x))
        return x + self.norm2(self.ff(x))


def test_norms_behind_the_sublayers_are_a_design_of_whom_nothing_is_told():
    report = encoder(Behind())
    assert report.exit_code == 3, report
    assert report.mistake.name == "norm behind the sublayer"
    assert encoder(Behind(), order="pre").exit_code == 1


class SeesAll(nn.Module):
    """Of PyTorch's attention, and nothing is hidden."""

    def __init__(self):
        super().__init__()
        made = (nn.MultiheadAttention(D, 2, batch_first=True) for _ in "12")
        self.self_attn, self.cross_attn = made
        self.mlp = network()
        self.norm1, self.norm2 = nn.LayerNorm(D), nn.LayerNorm(D)
        self.norm3 = nn.LayerNorm(D)

    def forward(self, x, memory):
        x = self.norm1(x + self.self_attn(x, x, x)[0])
        x = self.norm2(x + self.cross_attn(x, memory, memory)[0])
        return self.norm3(x + self.mlp(x))


def test_one_that_sees_all_is_asked_after_it_if_nothing_is_told():
    assert "causal=False" in decoder(SeesAll()).question
    assert decoder(SeesAll(), causal=False).passed
    report = decoder(SeesAll(), order="post")
    assert report.mistake.name == "the future is seen"
