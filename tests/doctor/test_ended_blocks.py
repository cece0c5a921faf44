"""Blocks whose sublayers end in a part that adds x and norms, as BERT's do."""

import pytest
import torch
from torch import nn

from selfattn.doctor import examine
from selfattn.doctor.kinds.blocks.endings import ended


class End(nn.Module):
    """Maps what the sublayer says, adds its x, norms."""

    def __init__(self, wide=6, adds=True):
        super().__init__()
        self.dense, self.norm = nn.Linear(wide, 6), nn.LayerNorm(6)
        self.adds = adds

    def forward(self, said, x):
        return self.norm(self.dense(said) + x * self.adds)


class Heads(nn.Module):
    """Two heads, without a map behind them, which is the end's."""

    def __init__(self):
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(6, 6) for _ in range(3))

    def forward(self, x, mask=None):
        q, k, v = (
            part(x).unflatten(-1, (2, 3)).transpose(1, 2)
            for part in (self.query, self.key, self.value)
        )
        scores = q @ k.mT / 3**0.5
        scores = scores if mask is None else scores + mask
        return (scores.softmax(dim=-1) @ v).transpose(1, 2).flatten(-2)


class Attention(nn.Module):
    def __init__(self, adds=True):
        super().__init__()
        self.own, self.output = Heads(), End(adds=adds)

    def forward(self, x, mask=None):
        return (self.output(self.own(x, mask), x),)


class Middle(nn.Module):
    def __init__(self):
        super().__init__()
        self.dense = nn.Linear(6, 11)

    def forward(self, x):
        return self.dense(x).relu()


class Layer(nn.Module):
    """A block of these parts; those below are ill."""

    def __init__(self, adds=(True, True)):
        super().__init__()
        self.attention = Attention(adds[0])
        self.intermediate, self.output = Middle(), End(11, adds[1])

    def forward(self, x, attention_mask=None):
        x = self.attention(x, attention_mask)[0]
        return self.output(self.intermediate(x), x)


class Deaf(Layer):
    def forward(self, x, attention_mask=None):
        return super().forward(x, None)


class FromTheStart(Layer):
    def forward(self, x, attention_mask=None):
        h = self.attention(x, attention_mask)[0]
        return self.output(self.intermediate(h), x)


def here(block, **facts):
    return examine(block, kind="encoder-block", time_limit=None, **facts)


def test_a_block_whose_sublayers_end_so_is_healthy():
    """Of BERT's layer the doctor said that the trouble was its own."""
    torch.manual_seed(0)
    report = here(Layer())
    assert report.passed, report
    assert report.facts == {"order": "post", "mask": "add"}
    assert here(Layer(), mask="add").passed


@pytest.mark.parametrize(
    ("block", "name"),
    [
        (Layer((False, True)), "no residual around the attention"),
        (Layer((True, False)), "no residual around the feed forward"),
        (Deaf(), "mask not passed on"),
        (FromTheStart(), "residual from the start"),
    ],
)
def test_what_is_wrong_with_one_has_its_name(block, name):
    report = here(block, mask="add")
    assert report.mistake is not None, report
    assert (report.mistake.name, report.exit_code) == (name, 1)


def test_other_blocks_have_no_such_ends():
    assert ended(nn.TransformerEncoderLayer(6, 2, 11)) is None
    assert ended(nn.Sequential(End(), End())) is None


class OneEnd(nn.Module):
    """An end where a network should be, and nothing beside it."""

    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(6)
        self.attn = nn.MultiheadAttention(6, 2, batch_first=True)
        self.tail = End()

    def forward(self, x):
        x = self.norm(x)
        return self.tail(self.attn(x, x, x)[0], x)


def test_where_there_is_no_network_it_is_told_which_may_be_named():
    """It was handed one text, took two, and that was a trouble."""
    report = here(OneEnd(), order="post")
    assert not report.trouble, report
    assert any("feed_forward=" in words for words in report.not_asked)
