"""Where the conclusions of the chapter on cost hold."""

from functools import partial

import torch
from torch import nn
from torch.autograd.graph import saved_tensors_hooks

from selfattn import MultiHeadAttention, attention, fused_attention
from selfattn.cost import flops

BOTH = "no weights, fast path off"


class Block(nn.Module):
    """Attention and a network of four times the width, behind norms."""

    def __init__(self, d):
        super().__init__()
        self.attend = MultiHeadAttention(d, 4)
        self.norms = nn.ModuleList([nn.LayerNorm(d) for _ in "ab"])
        self.widen = nn.Linear(d, 4 * d, bias=False)
        self.narrow = nn.Linear(4 * d, d, bias=False)

    def forward(self, x):
        x = x + self.attend(self.norms[0](x))
        return x + self.narrow(self.widen(self.norms[1](x)).relu())


def test_heads_share_out_the_features():
    for n, d in ((7, 12), (11, 24), (30, 36)):
        x = torch.zeros(2, n, d)
        for heads in (1, 3, 12):
            layer = MultiHeadAttention(d, heads)
            counted = flops(partial(layer, x))
            assert counted == 2 * (8 * n * d**2 + 4 * n**2 * d)


def test_pairs_and_projections_meet_at_twice_the_features():
    for d in (4, 8, 16):
        layer = MultiHeadAttention(d, 1)
        for n in (d, 2 * d, 3 * d):
            x = torch.zeros(1, n, d)
            pairs = flops(partial(attention, *layer.heads(x)))
            others = flops(partial(layer, x)) - pairs
            assert (pairs > others) == (n > 2 * d)
            assert (pairs == others) == (n == 2 * d)


def naive(q, k, v):
    """Attention as one would write it down."""
    scores = q @ k.mT * q.shape[-1] ** -0.5
    return scores.softmax(dim=-1) @ v


def kept(f, *inputs):
    """Bytes of all the storages that autograd keeps."""
    storages = {}

    def keep(x):
        storages[x.untyped_storage().data_ptr()] = x.untyped_storage()
        return x

    with saved_tensors_hooks(keep, lambda x: x):
        f(*inputs)
    return sum(storage.nbytes() for storage in storages.values())


def test_what_is_kept_for_the_backward_pass(setting, runs):
    torch.manual_seed(setting["seed"])
    n, d = setting["n"], setting["d"]
    inputs = [torch.randn(1, 1, n, d, requires_grad=True) for _ in range(3)]
    assert kept(naive, *inputs) == 4 * n**2 + 12 * n * d
    assert kept(fused_attention, *inputs) == 16 * n * d + 4 * n


def test_a_block_has_twelve_squares():
    for d in (4, 8, 12):
        block = Block(d)
        whole = sum(p.numel() for p in block.parameters())
        norms = sum(p.numel() for p in block.norms.parameters())
        assert whole - norms == 12 * d**2


def test_the_way_back_costs_twice(setting, runs):
    n, d = setting["n"], setting["d"]
    model = nn.Sequential(*(Block(d) for _ in range(setting["blocks"])))
    x = torch.randn(1, n, d)
    there = flops(partial(model, x))
    assert there == setting["blocks"] * (24 * n * d**2 + 4 * n**2 * d)
    assert flops(lambda: model(x).sum().backward()) == 3 * there


def test_an_operation_for_each_byte_of_the_cache():
    for kv_heads in (1, 2, 8):
        layer = MultiHeadAttention(64, 8, n_kv_heads=kv_heads).bfloat16()
        context = torch.randn(1, 33, 64).bfloat16()
        cache = layer.keys_values(context)
        asked = layer.heads(context[:, -1:], cache)
        operations = flops(partial(attention, *asked))
        assert operations == (cache.k.nbytes + cache.v.nbytes) * 8 // kv_heads


def test_keeping_the_heap_saves_nearly_half(setting, runs):
    took = {run["what"]: run["naive_ms"] for run in runs}
    fused = {run["what"]: run["fused_ms"] for run in runs}
    saved = 1 - took["kept"] / fused["kept"] / (
        took["default"] / fused["default"]
    )
    assert saved > 0.35


def test_only_both_switches_make_it_as_fast(setting, runs):
    (run,) = runs
    if setting["what"] == BOTH:
        assert 0.9 < run["ratio"] < 1.1
    else:
        assert run["ratio"] > 1.5


def test_clipping_spreads_a_nan():
    layer = nn.Linear(7, 5)
    layer(torch.ones(11, 7)).square().sum().backward()
    layer.bias.grad[0] = torch.nan
    nn.utils.clip_grad_norm_(layer.parameters(), 1.0)
    assert all(p.grad.isnan().all() for p in layer.parameters())


def test_a_recurrent_layer_does_less_at_every_length():
    for n, d in ((1, 8), (8, 8), (32, 8), (5, 16)):
        layer, cell = MultiHeadAttention(d, 1), nn.RNNCell(d, d)
        x = torch.zeros(1, n, d)
        steps = n * flops(partial(cell, x[0, :1]))
        assert flops(partial(layer, x)) * d == (2 * d + n) * steps
