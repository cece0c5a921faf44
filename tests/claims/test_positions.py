"""Claims of the sources on positions: what is so.

Each test says which claims of the ledger it settles, and how. What the
sources do is written here anew, by loops or by plain torch.
"""

import math

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from selfattn import MultiHeadAttention
from selfattn.measurements import measured
from selfattn.positions import (
    LearnedPositions,
    ShawAttention,
    alibi_bias,
    rope,
    sinusoidal,
)

settles = pytest.mark.settles
N, D = 7, 12


def draw(*shape):
    """Normal random numbers in double precision."""
    return torch.randn(*shape, dtype=torch.float64)


def layers(count=1, **options):
    """Layers of three heads each, in double precision."""
    made = [MultiHeadAttention(D, 3, **options) for _ in range(count)]
    return [layer.double().requires_grad_(False) for layer in made]


def as_printed(n, d):
    """Source 1's table: float32, two strided assignments."""
    pe = torch.zeros(n, d)
    p = torch.arange(0, n).unsqueeze(1).float()
    speed = torch.exp(torch.arange(0, d, 2).float() * -(math.log(1e4) / d))
    pe[:, 0::2] = torch.sin(p * speed)
    pe[:, 1::2] = torch.cos(p * speed)
    return pe


def by_formula(n, d):
    """The formula, one number at a time, in double precision."""
    table = torch.zeros(n, d, dtype=torch.float64)
    for p in range(n):
        for i in range(0, d, 2):
            angle = p / 10_000 ** (i / d)
            table[p, i] = math.sin(angle)
            if i + 1 < d:
                table[p, i + 1] = math.cos(angle)
    return table


def trained(arm, steps=800):
    """The runs of one encoding after so many steps."""
    wanted = {"arm": arm, "steps": steps}.items()
    runs = [r for r in measured("positions")["runs"] if wanted <= r.items()]
    assert len(runs) >= 5
    return runs


def means(arm, steps=800):
    """The mean shares of right answers of one encoding, over its seeds."""
    runs = trained(arm, steps)
    return [
        sum(run[band] for run in runs) / len(runs)
        for band in ("within", "twice", "four")
    ]


# Order, and who feels it


@settles("000-058", "contradicts-another-source")
@settles("001-051", "contradicts-another-source")
@settles("001-099", "contradicts-another-source")
@settles("003-063", "contradicts-another-source")
@settles("004-048", "contradicts-another-source")
def test_attention_is_equivariant_and_only_its_mean_invariant():
    (layer,) = layers()
    x, order = draw(1, N, D), torch.randperm(N)
    assert_close(layer(x[:, order]), layer(x)[:, order])
    assert (layer(x[:, order]) - layer(x)).abs().max() > 0.01
    assert_close(layer(x[:, order]).mean(dim=1), layer(x).mean(dim=1))


@settles("001-052", "holds-with-caveat")
@settles("003-064", "holds-with-caveat")
def test_each_word_is_the_same_and_the_sentences_are_not():
    (layer,) = layers()
    the, cat, sat = draw(3, D)
    one = layer(torch.stack([the, cat, sat])[None])[0]
    other = layer(torch.stack([sat, cat, the])[None])[0]
    assert_close(one[0], other[2])
    assert_close(one.sum(dim=0), other.sum(dim=0))
    assert (one - other).abs().max() > 0.01
    where = sinusoidal(3, D).double()
    one = layer((torch.stack([the, cat, sat]) + where)[None])[0]
    other = layer((torch.stack([sat, cat, the]) + where)[None])[0]
    assert (one[0] - other[2]).abs().max() > 0.01


@settles("000-059", "holds-with-caveat")
@settles("000-132", "holds-with-caveat")
@settles("004-040", "holds-with-caveat")
def test_two_causal_layers_feel_order_without_any_encoding():
    stack = layers(2)
    order = [3, 1, 2, 0, 4, 5, 6]
    moves = {}
    for causal in (False, True):
        a = draw(1, N, D)
        b = a[:, order]
        for depth, layer in enumerate(stack, start=1):
            a, b = a + layer(a, causal=causal), b + layer(b, causal=causal)
            moves[causal, depth] = (a[:, -1] - b[:, -1]).abs().max().item()
    assert moves.pop((True, 2)) > 1e-3
    assert all(move < 1e-12 for move in moves.values())


@settles("001-049", "holds")
@settles("001-098", "holds")
def test_a_recurrent_network_feels_order():
    gru = nn.GRU(D, D, batch_first=True).double()
    x, order = draw(1, N, D), torch.tensor([1, 0, 2, 3, 4, 5, 6])
    assert (gru(x[:, order])[0] - gru(x)[0][:, order]).abs().max() > 0.01


@settles("000-060", "holds")
@settles("003-065", "holds")
@settles("004-044", "holds")
def test_each_kind_breaks_the_symmetry_and_relative_ones_know_distances():
    (plain,) = layers()
    (turning,) = layers(rotate=rope)
    (shaw,) = layers(attend=ShawAttention(D // 3, max_distance=3))
    learned = LearnedPositions(N + 3, D).table.detach().double() * 50
    table = sinusoidal(N + 3, D).double()
    x, order = draw(1, N, D), torch.randperm(N)
    longer = torch.cat((draw(1, 3, D), x), dim=1)
    hidden = (torch.arange(N + 3) >= 3)[None]
    for encode, relative in (
        (lambda x, mask=None: plain(x + learned[: x.shape[1]], mask=mask), 0),
        (lambda x, mask=None: plain(x + table[: x.shape[1]], mask=mask), 0),
        (turning, 1),
        (shaw, 1),
    ):
        out = encode(x)
        shuffled = encode(x[:, order])
        assert (shuffled - out[:, order]).abs().max() > 1e-4
        moved = encode(longer, mask=hidden)[:, 3:]
        assert torch.allclose(moved, out) is bool(relative)


# The table


@settles("001-053", "holds")
@settles("003-066", "holds")
@settles("004-042", "holds")
@settles("001-076", "holds")
@pytest.mark.parametrize("d", [4, 6, 64])
def test_the_formula_of_the_sources(d):
    # Each number is between -1 and 1, and float32 rounds it by 6e-8; source
    # 1 computes its angles, below 100, in float32 as well.
    assert_close(
        sinusoidal(100, d).double(), by_formula(100, d), atol=1e-7, rtol=0
    )
    assert_close(
        as_printed(100, d).double(), by_formula(100, d), atol=2e-5, rtol=0
    )


@settles("001-074", "holds-with-caveat")
def test_the_class_of_source_1_is_right_to_four_places_at_5000():
    pe = as_printed(5000, 512)
    assert pe.numel() * pe.element_size() == 10_240_000
    assert pe[0].tolist() == [0, 1] * 256
    exact = sinusoidal(5000, 512)
    wrong = (pe - exact).abs().amax(dim=-1)
    assert wrong[:100].max() < 2e-5
    assert 1e-4 < wrong.max() < 5e-4


@settles("001-075", "wrong")
def test_the_class_of_source_1_needs_an_even_width():
    as_printed(10, 4), as_printed(10, 8)
    with pytest.raises(RuntimeError, match=r"\(2\) must match .*\(3\)"):
        as_printed(10, 5)
    assert_close(
        sinusoidal(10, 5).double(), by_formula(10, 5), atol=1e-7, rtol=0
    )


@settles("001-077", "holds-with-caveat")
def test_a_table_of_one_row_is_added_everywhere_and_nobody_says_so():
    x = torch.zeros(2, 12, 8)
    with pytest.raises(RuntimeError, match=r"\(12\) must match .*\(5\)"):
        x + as_printed(5, 8)[None][:, :12]
    out = x + as_printed(1, 8)[None][:, :12]
    assert torch.equal(out[:, :1].expand_as(out), out)


@settles("001-055", "holds-with-caveat")
@settles("004-043", "holds")
def test_a_learned_table_has_an_end():
    embedding = nn.Embedding(32, D)
    assert embedding(torch.arange(32)).shape == (32, D)
    with pytest.raises(IndexError, match="index out of range"):
        embedding(torch.arange(33))
    with pytest.raises(ValueError, match="positions 0 to 31 have a learned"):
        LearnedPositions(32, D)(33)


@settles("001-056", "holds-with-caveat")
@settles("004-041", "holds")
def test_added_positions_break_the_symmetry_and_may_drown_the_token():
    (layer,) = layers()
    x, order = draw(1, N, D), torch.randperm(N)
    p = sinusoidal(N, D).double()
    shuffled = layer(x[:, order] + p)
    assert (shuffled - layer(x + p)[:, order]).abs().max() > 1e-3
    # A start of variance 1/d, which the paper's factor √d belongs to.
    tokens = torch.randn(1000, 512) / 512**0.5
    ratio = sinusoidal(1, 512).norm() / tokens.norm(dim=-1).mean()
    assert 15 < ratio < 17


@settles("001-057", "holds")
def test_six_words():
    assert len(["The", "cat", "sat", "on", "the", "mat"]) == 6


@settles("001-058", "holds-with-caveat")
def test_the_table_depends_on_nothing_in_x():
    def source_1(x):
        return x + as_printed(20, D)[None][:, : x.shape[1]]

    x, y = torch.randn(2, 2, N, D)
    assert_close(source_1(x) - x, source_1(y) - y, atol=1e-6, rtol=0)
    assert not torch.allclose(source_1(x), source_1(y))


@settles("003-071", "holds")
def test_the_helper_of_source_3():
    def add(tokens, positions):
        if tokens.shape[1] > positions.shape[1]:
            raise ValueError("too long")
        return tokens + positions[:, : tokens.shape[1], :]

    tokens, positions = torch.randn(2, 50, 512), torch.randn(1, 50, 512)
    assert add(tokens, positions).shape == (2, 50, 512)
    with pytest.raises(ValueError, match="too long"):
        add(tokens, positions[:, :49])


@settles("003-068", "holds-with-caveat")
def test_a_step_is_one_rotation_and_the_bare_product_has_no_direction():
    table, k = by_formula(200, 64), 3
    angle = k * 10_000.0 ** (-torch.arange(0, 64, 2).double() / 64)
    cos, sin = angle.cos(), angle.sin()
    blocks = torch.stack((cos, sin, -sin, cos), dim=-1).unflatten(-1, (2, 2))
    R = torch.block_diag(*blocks)
    assert_close(table[:-k] @ R.T, table[k:], atol=1e-10, rtol=0)
    products = table @ table.T
    for distance in (1, 5, 50):
        along = products.diagonal(distance)
        assert_close(along, along[:1].expand_as(along))
        assert_close(along, products.diagonal(-distance))


# Rotation, and what reaches further


@settles("003-070", "holds-with-caveat")
@settles("004-045", "holds")
def test_rope_multiplies_complex_numbers_inside_the_layer():
    x = draw(2, 3, N, 6)
    angle = torch.arange(N)[:, None] * 10_000.0 ** (
        -torch.arange(0, 6, 2).double() / 6
    )
    z = torch.complex(x[..., 0::2], x[..., 1::2]) * torch.exp(1j * angle)
    turned = rope(x)
    assert_close(turned[..., 0::2], z.real)
    assert_close(turned[..., 1::2], z.imag)
    assert_close(turned.norm(dim=-1), x.norm(dim=-1))
    # Queries and keys are turned; what enters, and the values, are not.
    (layer,) = layers(rotate=rope)
    (plain,) = layers()
    plain.load_state_dict(layer.state_dict())
    text = draw(1, N, D)
    (q, k, v), (q_0, k_0, v_0) = layer.heads(text), plain.heads(text)
    assert torch.equal(v, v_0)
    assert_close(q, rope(q_0))
    assert_close(k, rope(k_0))
    one = draw(1, 6).expand(N, 6)
    scores = rope(one) @ rope(one).mT
    assert_close(scores.diagonal(2), scores[0, 2].expand(N - 2))


@settles("003-067", "wrong")
def test_a_sinusoidal_table_does_not_reach_beyond_the_length_trained():
    assert sinusoidal(1, D, offset=10**6).isfinite().all()  # it is defined
    within, twice, four = means("sinusoidal")
    assert within > 0.99
    assert twice < 0.3
    assert four < 0.15  # one in sixteen is guessing


@settles("004-046", "contradicts-another-source")
def test_relative_encodings_reach_further_and_not_all_reach_far():
    sine = means("sinusoidal")
    for arm in ("RoPE", "Shaw", "Transformer-XL", "T5", "ALiBi"):
        assert means(arm)[1] > 3 * sine[1]
        assert means(arm)[2] > 2 * sine[2]
    assert means("Shaw")[2] > 0.99
    assert means("RoPE")[2] < 0.9
    assert means("T5")[2] < 0.6
    assert alibi_bias(4, 1, 3).shape == (4, 1, 3)
    # What fades is a matter of training, for one of them and not for another.
    assert means("ALiBi")[0] < 0.8 < 0.9 < min(means("ALiBi", 3200))
    assert means("RoPE", 3200)[2] < 0.7


def test_far_keys_hurt_rope_by_distance_and_t5_by_their_number_too():
    for steps in (800, 3200):
        for run in trained("RoPE", steps):
            assert run["four"] < 0.7
            assert run["four, clamped"] > 0.99 < run["four, hidden"]
            # New angles do not suffice: they all stay, or go from five of six.
            assert run["four, clamped pair 0"] > 0.99
            assert run["four, clamped pairs 3 to 7"] < 0.9
            # The key 60 back is taken for the third, and others are not.
            assert run["four, 59 to 61 hidden"] > run["four"] + 0.2
            assert abs(run["four, 70 to 72 hidden"] - run["four"]) < 0.01
    for arm in ("T5", "T5, to 32"):
        for run in trained(arm):
            assert run["four"] < 0.5
            assert 0.6 < run["four, clamped"] < 0.8 < run["four, hidden"]
