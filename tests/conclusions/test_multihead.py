"""Where the conclusions of the chapter on several heads hold."""

import itertools

import torch
from torch.testing import assert_close

from selfattn import MultiHeadAttention, attention
from selfattn.cost import flops

MOST_BY_ONE, ALL = 0.3, 0.95


def draw(*shape):
    """Normal random numbers in double precision."""
    return torch.randn(*shape, dtype=torch.float64)


def test_two_wrong_reshapes_look_at_no_later_token():
    def by_view(x):
        heads = x.view(2, len(x), -1)
        return attention(heads, heads, heads, causal=True).reshape(x.shape)

    x = draw(5, 6)
    slopes = torch.autograd.functional.jacobian(by_view, x)
    felt = slopes.abs().sum(dim=(1, 3)) > 0  # (5, 5): output, token
    assert not felt.triu(1).any()
    order = torch.tensor([3, 0, 4, 1, 2])
    plain = x.view(2, 5, 3)
    moved = x[order].view(2, 5, 3)
    out, shuffled = attention(*[plain] * 3), attention(*[moved] * 3)
    assert not torch.allclose(out.reshape(5, 6)[order], shuffled.view(5, 6))


def test_a_loop_with_a_cache_gives_what_one_pass_gives():
    for n_kv_heads in (1, 2, 6):
        layer = MultiHeadAttention(12, 6, n_kv_heads=n_kv_heads).double()
        x, rows, past = draw(3, 7, 12), [], None
        for t in range(7):
            past = layer.keys_values(x[:, t : t + 1], past)
            rows.append(layer(x[:, t : t + 1], past))
        assert_close(torch.cat(rows, dim=1), layer(x, causal=True))


def test_heads_change_neither_parameters_nor_operations():
    for d, n in ((12, 7), (24, 5), (36, 11)):
        counts = set()
        for heads in (1, 2, 3, 4, 6, 12):
            layer, x = MultiHeadAttention(d, heads), torch.zeros(2, n, d)
            size = sum(p.numel() for p in layer.parameters())
            counts.add((size, flops(lambda f=layer, x=x: f(x))))
        assert len(counts) == 1


def test_shared_heads_are_copied_heads():
    small = MultiHeadAttention(24, 6, n_kv_heads=2).double()
    large = MultiHeadAttention(24, 6).double()
    state = small.state_dict()
    for name in ("W_k.weight", "W_v.weight"):
        blocks = state[name].unflatten(0, (2, 4))
        state[name] = torch.cat([blocks[i // 3] for i in range(6)])
    large.load_state_dict(state)
    x = draw(2, 7, 24)
    assert_close(small(x), large(x))


def test_a_linear_reader_has_the_larger_share():
    """Of random tables that are always right, with every share tried."""
    pairs = torch.tensor(list(itertools.permutations(range(3), 2)))
    a, b = pairs.T
    right_with = set()
    for _ in range(300):
        table, extra = torch.eye(3) + 0.4 * torch.randn(3, 3), torch.randn(3)
        for share in (0.1, 0.3, 0.45, 0.55, 0.7, 0.9):
            read = (1 - share) * table[a] + share * table[b] + 0.2 * extra
            if (read.argmax(dim=-1) == b).all():
                right_with.add(share)
    assert right_with == {0.55, 0.7, 0.9}


def test_heads_in_another_order_give_the_same_output():
    layer, other = (MultiHeadAttention(12, 3).double() for _ in range(2))
    features = torch.arange(12).view(3, 4)[[2, 0, 1]].flatten()
    for name in ("W_q", "W_k", "W_v"):
        W = getattr(layer, name).weight.data[features]
        getattr(other, name).weight.data = W
    other.W_o.weight.data = layer.W_o.weight.data[:, features]
    x = draw(2, 7, 12)
    assert_close(other(x), layer(x))


def both(run, after):
    """The share of names with both digits right, by then."""
    return run["both" if after == run["steps"] else f"both at {after}"]


def test_one_head_gets_both_for_few_names(setting, runs):
    (run,) = runs
    assert both(run, setting["after"]) <= MOST_BY_ONE


def test_two_heads_get_both(setting, runs):
    (run,) = runs
    assert both(run, setting["after"]) >= ALL


def test_one_head_and_an_mlp_get_both(setting, runs):
    (run,) = runs
    assert both(run, setting["after"]) >= ALL
