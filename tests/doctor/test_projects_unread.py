"""What stands in projects that nobody had read, made anew: sound, or asked.

Each of these was accused of something, told nothing but what it is, or less
than all that is usual.
"""

import functools

import pytest
import torch
from torch import nn

from selfattn.doctor import examine

here = functools.partial(examine, time_limit=None)


@pytest.mark.parametrize("batch_first", [True, False])
def test_who_says_that_it_hides_nothing_by_itself_is_held_to_its_mask(
    batch_first,
):
    """PyTorch's own decoder layer was wrong on 7 of 10 probes."""
    layer = nn.TransformerDecoderLayer(12, 3, 24, batch_first=batch_first)
    report = here(layer, kind="decoder-block", causal=False)
    assert report.passed, report

    class Deaf(nn.TransformerDecoderLayer):
        def forward(self, tgt, memory, tgt_mask=None, memory_mask=None):
            return super().forward(tgt, memory, memory_mask=memory_mask)

    deaf = Deaf(12, 3, 24, batch_first=batch_first)
    layout = "BND" if batch_first else "NBD"
    told = {"kind": "decoder-block", "layout": layout, "mask": "block"}
    assert here(deaf, causal=False, **told).exit_code == 1


class Reading(nn.Module):
    """A block around PyTorch's attention, which takes tokens first."""

    def __init__(self, across=False, turned=False):
        super().__init__()
        self.self_attn = nn.MultiheadAttention(12, 3)
        self.cross_attn = nn.MultiheadAttention(12, 3) if across else None
        self.norms = nn.ModuleList(nn.LayerNorm(12) for _ in range(2 + across))
        self.network = nn.Sequential(
            nn.Linear(12, 24), nn.ReLU(), nn.Linear(24, 12)
        )
        self.turned = turned

    def attend(self, part, x, y, mask):
        if self.turned:
            x, y = x.transpose(0, 1), y.transpose(0, 1)
        said = part(query=x, key=y, value=y, attn_mask=mask)[0]
        return said.transpose(0, 1) if self.turned else said

    def finished(self, x, said, i):
        return self.norms[i](x + said)

    def worked(self, x):
        return self.finished(x, self.network(x), -1)


class Encodes(Reading):
    def forward(self, x, src_mask=None):
        said = self.attend(self.self_attn, x, x, src_mask)
        return self.worked(self.finished(x, said, 0))


class Decodes(Reading):
    def forward(self, x, memory, tgt_mask=None, memory_mask=None):
        x = self.finished(x, self.attend(self.self_attn, x, x, tgt_mask), 0)
        said = self.attend(self.cross_attn, x, memory, memory_mask)
        return self.worked(self.finished(x, said, 1))


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(
    ("block", "kind"), [(Encodes, "encoder-block"), (Decodes, "decoder-block")]
)
def test_a_block_of_which_nobody_told_may_take_tokens_first(
    block, kind, turned
):
    """It was said to exchange batch and tokens, for so its attention does."""
    made = block(across=block is Decodes, turned=turned)
    report = here(made, kind=kind)
    assert report.passed, report
    layout = "BND" if turned else "NBD"
    assert report.facts["layout"] == layout
    other = "NBD" if turned else "BND"
    assert not here(made, kind=kind, layout=other).passed


class EinopsError(RuntimeError):
    """What a library raises of shapes, in its own words."""


def test_who_wants_a_picture_may_say_so_in_any_library_s_words():
    class OfPictures(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv, self.out = nn.Linear(12, 36), nn.Linear(12, 12)

        def forward(self, x):
            if x.shape[1] not in (4, 9, 13):
                raise EinopsError("Error while processing b (h w) c")
            q, k, v = self.qkv(x).chunk(3, -1)
            return self.out((q @ k.mT / 12**0.5).softmax(-1) @ v)

    report = here(OfPictures(), kind="self-attention")
    assert report.exit_code in (2, 3), report


class OnePlus(nn.Module):
    """Gains that count from zero, and begin at one all the same."""

    def __init__(self):
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.ones(12)), 1e-6

    def forward(self, x):
        size = x.float().pow(2).mean(-1, keepdim=True) + self.eps
        return (x.float() * size.rsqrt() * (1 + self.weight)).type_as(x)


def test_where_gains_begin_tells_not_from_where_they_count():
    """Two projects load all their gains, and make them of ones."""
    report = here(OnePlus(), kind="rms-norm")
    assert report.exit_code == 3 and report.mistake.name == "one plus the gain"
    told = here(OnePlus(), kind="rms-norm", gain="itself")
    assert told.exit_code == 1 and told.mistake.name == "one plus the gain"
    assert here(OnePlus(), kind="rms-norm", gain="one plus").passed
    from_zero = OnePlus()
    nn.init.zeros_(from_zero.weight)
    report = here(from_zero, kind="rms-norm")
    assert report.passed and report.facts["gain"] == "one plus"


def test_positions_that_come_beside_tokens_are_asked_after():
    """It was told that a tuple has no ndim, which it never said it had."""

    class Apart(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = nn.Parameter(torch.randn(40, 1, 12))

        def forward(self, x):
            return x, self.table[: len(x)]

    for told in ({}, {"layout": "NBD"}):
        report = here(Apart(), kind="positions", **told)
        assert report.exit_code in (2, 3), report
        assert "ndim" not in str(report)


def test_a_rotation_that_answers_in_complex_numbers_is_asked_after():
    def turned(x, offset=0):
        rates = 10_000.0 ** (-torch.arange(x.shape[-1] // 2) * 2 / x.shape[-1])
        angles = (offset + torch.arange(x.shape[-2]))[:, None] * rates
        turns = torch.polar(torch.ones_like(angles), angles)
        scaled = x.float() * x.shape[-1] ** 0.5
        return scaled * turns.repeat_interleave(2, dim=-1)

    report = here(turned, kind="rope")
    assert report.exit_code == 3, report


def test_keys_that_come_on_their_side_are_asked_after():
    def attend(q, k, v, mask=None):
        scores = q @ k / q.shape[-1] ** 0.5
        if mask is not None:
            scores = scores.masked_fill(mask, -torch.inf)  # NaN, if it keeps
        return scores.softmax(-1) @ v

    assert here(attend, kind="attention").exit_code == 3
    told = here(attend, kind="attention", layout="any")
    assert told.exit_code == 1
