"""Modules are told apart by what they do to tokens, and by their parts."""

from functools import partial

import torch
from torch import nn

from selfattn import MultiHeadAttention
from selfattn.blocks import EncoderBlock
from selfattn.doctor.door.modules import (
    is_block,
    keeps_a_cache,
    kinds_of,
    mixes,
    norms_of,
    takes_two,
    widths,
)


class Adds(nn.Module):
    """Adds a table that it keeps as a buffer, after a dropout."""

    def __init__(self, d_model=6):
        super().__init__()
        self.register_buffer("table", torch.rand(9, d_model))
        self.drop = nn.Dropout(0.5)

    def forward(self, x):
        return self.drop(x + self.table[: x.shape[1]])


class Cached(MultiHeadAttention):
    def forward(self, x, past=None):
        return super().forward(x), {"k": x}


class TokensFirst(MultiHeadAttention):
    def forward(self, x):
        return super().forward(x.transpose(0, 1)).transpose(0, 1)


def network(width=6):
    parts = nn.Linear(width, 12), nn.ReLU(), nn.Linear(12, width)
    return nn.Sequential(*parts).eval()


def first(module, name="M"):
    found = kinds_of(module.eval(), name)
    return found[0][0] if found else ""


def test_pytorch_s_own_are_known():
    layer = {"batch_first": True}
    known = {
        "encoder-block": nn.TransformerEncoderLayer(8, 2, 16, **layer),
        "decoder-block": nn.TransformerDecoderLayer(8, 2, 16, **layer),
        "cross-attention": nn.MultiheadAttention(8, 2, **layer),
        "layer-norm": nn.LayerNorm(8),
        "rms-norm": nn.RMSNorm(8),
        "softmax": nn.Softmax(dim=-1),
    }
    assert {kind: first(known[kind]) for kind in known} == {
        kind: kind for kind in known
    }
    both = kinds_of(known["cross-attention"].eval(), "M")
    assert [kind for kind, _ in both] == ["cross-attention", "self-attention"]


def test_ours_are_known():
    assert first(EncoderBlock(8, 2, 16, pre=True)) == "encoder-block"
    assert first(EncoderBlock(8, 2, 16, pre=False)) == "encoder-block"
    ours = kinds_of(MultiHeadAttention(8, 2).eval(), "M")
    # It may be given a context, and need not.
    assert [kind for kind, _ in ours] == ["self-attention", "cross-attention"]
    assert first(Adds()) == "positions"
    assert first(Cached(8, 2)) == "cached-decoder"
    assert first(TokensFirst(8, 2)) == "self-attention"


def test_a_network_alone_is_nothing():
    assert first(network()) == ""
    assert first(nn.Linear(6, 6)) == ""
    assert not mixes(network(), False)


def test_tokens_mix_along_whichever_axis_they_lie():
    assert mixes(MultiHeadAttention(8, 2).eval(), False)
    assert mixes(TokensFirst(8, 2).eval(), False)


def test_a_path_makes_a_block_and_a_norm_inside_does_not():
    class Path(nn.Module):
        def __init__(self, inner):
            super().__init__()
            self.inner = inner

        def forward(self, x):
            return x + self.inner(x)

    assert is_block(Path(MultiHeadAttention(8, 2)))
    assert not is_block(MultiHeadAttention(8, 2))
    norms = nn.Sequential(nn.LayerNorm(6), network(), nn.LayerNorm(6))
    assert is_block(norms) and norms_of(norms) == 2
    assert not is_block(nn.Sequential(nn.LayerNorm(6), network()))


class Block(nn.Sequential):
    """With experts, of whose maps none leads back from another's width."""


def test_two_norms_and_a_name_make_a_block():
    norms = nn.LayerNorm(6), MultiHeadAttention(6, 2), nn.LayerNorm(6)
    assert is_block(Block(*norms)) and not is_block(nn.Sequential(*norms))
    assert not is_block(Block(*norms[:2]))


def test_a_second_sequence_is_told_from_a_mask():
    class Looks(MultiHeadAttention):
        def forward(self, x, y):
            return super().forward(x, y)

    class Masked(MultiHeadAttention):
        def forward(self, x, attn_mask):
            return super().forward(x)

    assert takes_two(Looks(8, 2)) and not takes_two(Masked(8, 2))
    assert first(Masked(8, 2)) == "self-attention"


def test_weights_are_no_cache():
    class Weighs(MultiHeadAttention):
        def forward(self, x, mask=None):
            return super().forward(x), torch.ones(2, 5, 5)

    assert not keeps_a_cache(Weighs(8, 2)) and keeps_a_cache(Cached(8, 2))


class Tells(MultiHeadAttention):
    """Gives more than its output, and takes it back if it is told to."""

    def __init__(self, takes):
        super().__init__(8, 2)
        self.takes = takes

    def forward(self, x, mask=None, before=None):
        if before is not None and not self.takes:
            x = x + before
        more = before["k"] if before and self.takes else x
        return super().forward(more), {"k": x}


class Masked(MultiHeadAttention):
    """Looks at no mask, whatever it is."""

    def forward(self, x, Attn_Mask=None):
        return super().forward(x), {"lengths": x.shape[1]}


def test_what_is_told_beside_the_output_is_no_cache_unless_it_is_taken():
    """Lengths in a dictionary made attention a decoder with a cache."""
    assert first(Tells(takes=False)) == "self-attention"
    assert first(Tells(takes=True)) == "cached-decoder"
    assert first(Masked(8, 2)) == "self-attention"


def test_weights_beside_a_cache_in_the_arguments_are_no_cache():
    class Looks(MultiHeadAttention):
        def forward(self, x, context, cache=None):
            return super().forward(x, context), torch.ones(2, 2, 5, 5)

    assert first(Looks(8, 2).eval()) == "cross-attention"


def test_a_norm_has_its_gain_and_shift_and_a_mask_may_be_a_module():
    norm = nn.LayerNorm(8)
    with torch.no_grad():
        norm.weight.copy_(torch.arange(1, 9))
        norm.bias.copy_(torch.arange(8))
    assert first(norm) == "layer-norm"

    class Rows(nn.Module):
        def forward(self, n_q, n_k):
            return torch.ones(n_q, n_k).tril(n_k - n_q).bool()

    assert first(Rows()) == "causal-mask"


def test_the_width_is_read_off_the_matrices():
    assert widths(network(6))[0] == 6
    assert widths(nn.LayerNorm(7))[0] == 7
    assert widths(nn.Softmax(-1)) == [8]
    make = partial(MultiHeadAttention, 12, 3)
    assert widths(make())[0] == 12


class Gates(nn.Module):
    """A path past a look at a sequence of another width, if there is one."""

    def __init__(self, deaf=False):
        super().__init__()
        self.deaf = deaf
        self.q, self.out = nn.Linear(6, 4), nn.Linear(4, 6)
        self.kv = nn.Linear(9, 8)

    def forward(self, x, pictures=None):
        if pictures is None or self.deaf:
            return x + self.out(self.q(x).cumsum(dim=1))
        k, v = self.kv(pictures).chunk(2, dim=-1)
        return x + self.out((self.q(x) @ k.mT).softmax(dim=-1) @ v)


class Asks(Gates):
    def forward(self, x, pictures):
        return super().forward(x, pictures)


class AsksByName(Gates):
    def forward(self, x, *, pictures):
        return super().forward(x, pictures)


def test_a_second_sequence_may_have_another_width_and_be_left_out():
    torch.manual_seed(0)
    for made in (Gates(), Asks(), AsksByName()):
        assert takes_two(made)
        assert kinds_of(made, "Layer")[0][0] == "decoder-block"
    assert not takes_two(Gates(deaf=True))
