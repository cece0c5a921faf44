"""Modules as others write them, of which the doctor knew too little."""

import functools

import torch
import torch.nn.functional as F
from torch import nn

from selfattn.doctor import examine

here = functools.partial(examine, time_limit=None)
BND = {"layout": "BND"}


class Scale(nn.Module):
    """A root mean square norm, whose class does not say so."""

    def __init__(self, d):
        super().__init__()
        self.gain = nn.Parameter(torch.ones(d))

    def forward(self, x):
        size = x.square().mean(-1, keepdim=True) + 1e-6
        return self.gain * x * size.rsqrt()


class Attention(nn.Module):
    """Three heads over maps a to d; fewer heads of keys, if so told."""

    def __init__(self, kv_heads=3):
        super().__init__()
        self.n_heads, self.kv_heads = 3, kv_heads
        self.q_proj, self.o_proj = nn.Linear(12, 12), nn.Linear(12, 12)
        self.k_proj = nn.Linear(12, 4 * kv_heads)
        self.v_proj = nn.Linear(12, 4 * kv_heads)

    def repeated(self, k, v):
        times = self.n_heads // self.kv_heads
        return (x.repeat_interleave(times, 1) for x in (k, v))

    def forward(self, x, context=None, mask=None):
        y = x if context is None else context
        maps = (self.q_proj, x), (self.k_proj, y), (self.v_proj, y)
        q, k, v = (
            m(t).unflatten(-1, (-1, 4)).transpose(1, 2) for m, t in maps
        )
        k, v = self.repeated(k, v)
        out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return self.o_proj(out.transpose(1, 2).flatten(2))


class Block(nn.Module):
    """Norms before the sublayers, whose class has another name."""

    def __init__(self, scaled=False):
        super().__init__()
        self.attention, self.one, self.two = Attention(), Scale(12), Scale(12)
        self.up, self.gate = nn.Linear(12, 20), nn.Linear(12, 20)
        self.down, self.scaled = nn.Linear(20, 12), scaled
        if scaled:
            self.first = nn.Parameter(torch.full((12,), 0.5))
            self.second = nn.Parameter(torch.full((12,), 0.5))

    def network(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))

    def by(self, name, y):
        return getattr(self, name) * y if self.scaled else y

    def forward(self, x):
        x = x + self.by("first", self.attention(self.one(x)))
        return x + self.by("second", self.network(self.two(x)))


def test_a_norm_is_known_by_what_it_does():
    """Of one whose class is not called a norm, it asked where they are."""
    report = here(Block(), kind="encoder-block")
    assert report.passed, report
    assert report.facts["order"] == "pre"


def test_a_network_of_three_maps_that_lie_flat_is_seen_as_it_runs():
    """It asked what bends it, though the block can be watched."""

    class Unbent(Block):
        def __init__(self):
            super().__init__()
            del self.gate

        def network(self, x):
            return self.down(self.up(x))

    class Bilinear(Block):
        def network(self, x):
            return self.down(self.gate(x) * self.up(x))

    class Alone(Block):
        def forward(self, x):
            x = self.attention(self.one(x))
            return x + self.network(self.two(x))

    report = here(Alone(), kind="encoder-block", order="pre")
    assert report.mistake.name == "no residual around the attention"
    assert here(Bilinear(), kind="encoder-block").passed
    report = here(Unbent(), kind="encoder-block", order="pre")
    assert report.mistake.name == "network without a bend"


def test_a_block_may_scale_what_its_sublayers_say():
    """Sound blocks with a learned scale were held to the sum without one."""

    class Unused(Block):
        def by(self, name, y):
            return y

    assert here(Block(scaled=True), kind="encoder-block").passed
    report = here(Unused(scaled=True), kind="encoder-block")
    assert report.mistake.name == "scale not used"


def test_numbers_of_a_block_that_nobody_knows_are_told():
    """Of one number vector and two sublayers: whose is it?"""
    block = Block()
    block.tail = nn.Parameter(torch.ones(12))
    report = here(block, kind="encoder-block")
    told = [*report.not_asked.values(), report.question]
    assert any("numbers of its own, tail" in words for words in told)


def test_a_block_answers_in_the_type_that_it_is_given():
    """One that ends in .float() was healthy, though it promised float64."""

    class Narrow(Block):
        def forward(self, x):
            return super().forward(x).float()

    told = {"kind": "encoder-block", "order": "pre"}
    types = {"dtypes": ["float32", "float64"]}
    assert here(Block(), **told, **types).passed
    report = here(Narrow(), **told, **types)
    assert report.mistake.name == "another type returned"
    assert report.exit_code == 1
    assert "Nobody promised" in here(Narrow(), kind="encoder-block").different


def test_keys_alone_may_meet_another_group():
    """Tiled keys beside rightly repeated values had no name."""

    class Tiled(Attention):
        def __init__(self):
            super().__init__(kv_heads=1)
            self.n_heads, self.kv_heads = 6, 2
            self.q_proj, self.o_proj = nn.Linear(12, 24), nn.Linear(24, 12)
            self.k_proj, self.v_proj = nn.Linear(12, 8), nn.Linear(12, 8)

        def repeated(self, k, v):
            return k.repeat(1, 3, 1, 1), v.repeat_interleave(3, 1)

    report = here(Tiled(), kind="self-attention", n_heads=6, **BND)
    assert report.mistake.name == "groups in another order"


class Latent(nn.Module):
    """Keys and values are made of a few numbers that are made of x."""

    def __init__(self):
        super().__init__()
        self.q_proj, self.kv_down = nn.Linear(12, 12), nn.Linear(12, 5)
        self.k_proj, self.v_proj = nn.Linear(5, 12), nn.Linear(5, 12)
        self.o_proj, self.n_heads = nn.Linear(12, 12), 3

    def forward(self, x):
        few = self.kv_down(x)
        pairs = (self.q_proj, x), (self.k_proj, few), (self.v_proj, few)
        q, k, v = (
            a(t).unflatten(-1, (3, 4)).transpose(1, 2) for a, t in pairs
        )
        out = F.scaled_dot_product_attention(q, k, v)
        return self.o_proj(out.transpose(1, 2).flatten(2))


def test_keys_made_of_something_else_than_x_are_no_plain_projections():
    """It said that the heads do not divide the projections, and stopped."""
    report = here(Latent(), kind="self-attention")
    assert report.passed, report
    assert "its numbers" in report.not_asked


class Cached(nn.Module):
    """A layer with a cache; its diagonal may be moved."""

    def __init__(self, blind):
        super().__init__()
        self.map, self.blind = nn.Linear(6, 18), blind

    def forward(self, x, kept):
        q, k, v = self.map(x).chunk(3, -1)
        if kept is not None:
            k, v = torch.cat((kept[0], k), 1), torch.cat((kept[1], v), 1)
        n, m = q.shape[1], k.shape[1]
        seen = torch.ones(n, m).bool().tril(m - n - self.blind)
        scores = (q @ k.mT / 6**0.5).masked_fill(~seen, -torch.inf)
        return scores.softmax(-1) @ v, (k, v)


class Stack(nn.Module):
    """Two such layers, each added to what came before."""

    def __init__(self, blind):
        super().__init__()
        self.layers = nn.ModuleList(Cached(blind) for _ in range(2))

    def forward(self, x, cache=None):
        kept = []
        for i, layer in enumerate(self.layers):
            y, one = layer(x, cache and cache[i])
            x, kept = x + y, [*kept, one]
        return x, kept


def test_nan_everywhere_is_explained_by_where_it_begins():
    """Of a stack in which all is NaN, it surely said "no softmax"."""
    assert here(Stack(0), kind="cached-decoder", d_model=6).passed
    report = here(Stack(1), kind="cached-decoder", d_model=6)
    assert report.mistake.name == "not itself and the first is nan"
    assert report.mistake.also is None


class Flat(nn.Module):
    """A block whose maps lie in it; keys may be cut, or values left, so."""

    def __init__(self):
        super().__init__()
        for name in ("q", "k", "v", "o"):
            setattr(self, name, nn.Linear(12, 12))
        self.up, self.down = nn.Linear(12, 20), nn.Linear(20, 12)
        self.one, self.two = nn.LayerNorm(12), nn.LayerNorm(12)
        self.heads = 3

    def cut(self, y):
        return y.unflatten(-1, (3, 4)).transpose(1, 2)

    def keys(self, x):
        return self.cut(self.k(x))

    def values(self, x):
        return self.cut(self.v(x))

    def forward(self, x):
        q, k, v = self.cut(self.q(x)), self.keys(x), self.values(x)
        heads = F.scaled_dot_product_attention(q, k, v)
        x = self.one(x + self.o(heads.transpose(1, 2).flatten(2)))
        return self.two(x + self.down(torch.relu(self.up(x))))


def test_one_of_three_flat_maps_may_be_cut_otherwise_or_not_be_used():
    """Only a mistake of all three had a name."""

    class Cut(Flat):
        def keys(self, x):
            return self.k(x).reshape(len(x), 3, -1, 4)

    class Unused(Flat):
        def values(self, x):
            return self.cut(x)

    told = {"kind": "encoder-block", "order": "post"}
    assert here(Flat(), **told).passed
    cut, unused = here(Cut(), **told), here(Unused(), **told)
    assert cut.mistake.name == "cut without transpose"
    assert unused.mistake.name == "values not projected"


class Late(nn.Module):
    """A layer with a cache, whose mask comes after the softmax."""

    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(6, 18)

    def forward(self, x, kept):
        q, k, v = self.qkv(x).chunk(3, -1)
        if kept is not None:
            k, v = torch.cat((kept[0], k), 1), torch.cat((kept[1], v), 1)
        n, m = q.shape[1], k.shape[1]
        weights = (q @ k.mT / 6**0.5).softmax(-1).tril(m - n)
        return weights @ v, (k, v)


def test_the_attention_in_a_stack_is_asked_alone():
    """Of a mask that came after the softmax it said "not causal"."""
    stack = Stack(0)
    stack.layers = nn.ModuleList(Late() for _ in range(2))
    report = here(stack, kind="cached-decoder", d_model=6)
    assert report.mistake.name == "mask after softmax", report
