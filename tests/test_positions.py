"""Positions against loops, properties, and the code of published models."""

import copy
import math
from decimal import Decimal, localcontext

import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch.testing import assert_close
from transformers import GPTNeoXConfig, LlamaConfig, T5Config
from transformers.models.bloom.modeling_bloom import build_alibi_tensor
from transformers.models.gpt_neox import modeling_gpt_neox as neox
from transformers.models.llama import modeling_llama as llama
from transformers.models.t5.modeling_t5 import T5Attention

from selfattn.dot_product import attention, attention_steps
from selfattn.masks import causal_mask, padding_mask
from selfattn.positions import (
    LearnedPositions,
    ShawAttention,
    T5Bias,
    TransformerXLAttention,
    alibi_bias,
    alibi_slopes,
    halves_to_pairs,
    pairs_to_halves,
    rope,
    rope_halves,
    sinusoidal,
    t5_bucket,
)

# More digits than whole turns and what is left of them have together.
TURN = 2 * Decimal("3.1415926535897932384626433832795028841971693993751")
SCORERS = [
    lambda: ShawAttention(5, 13, max_distance=3).double(),
    lambda: TransformerXLAttention(3, 5).double(),
]


@pytest.fixture(params=SCORERS, ids=["shaw", "transformer-xl"])
def scorer(request, device):
    """A mechanism with relative positions and no parameter left at zero."""
    made = request.param().to(device)
    for p in made.parameters():
        torch.nn.init.normal_(p)
    return made


# --- sinusoidal and learned -------------------------------------------------


@pytest.mark.parametrize("d_model", [1, 2, 7, 16])
def test_sinusoidal_is_the_formula_entry_by_entry(d_model):
    table = sinusoidal(11, d_model)
    for p in range(11):
        for f in range(d_model):
            angle = p / 10_000 ** (2 * (f // 2) / d_model)
            expected = math.cos(angle) if f % 2 else math.sin(angle)
            assert table[p, f].item() == pytest.approx(expected, abs=1e-6)


def test_sinusoidal_offset_continues_the_table():
    assert torch.equal(sinusoidal(5, 7, offset=6), sinusoidal(11, 7)[6:])


def test_sinusoidal_is_right_far_out():
    """In float32 angles the table is off by 4e-4 at position 5000."""
    far = sinusoidal(1, 64, offset=5000)[0, 2].item()
    exact = math.sin(5000 * 10_000 ** (-2 / 64))
    assert far == pytest.approx(exact, abs=1e-6)


def test_sinusoidal_base_sets_the_longest_wavelength():
    assert sinusoidal(2, 4, base=100.0)[1, 2].item() == pytest.approx(
        math.sin(0.1), abs=1e-7
    )


def test_moving_on_by_k_is_one_rotation_whatever_the_position():
    d, k = 8, 3
    table = sinusoidal(20, d).double()
    angle = k * 10_000.0 ** (-torch.arange(0, d, 2).double() / d)
    move = torch.block_diag(
        *(
            torch.tensor([[a.cos(), a.sin()], [-a.sin(), a.cos()]]).double()
            for a in angle
        )
    )
    assert_close(table[k:], table[:-k] @ move.T, atol=1e-6, rtol=0)


def test_learned_positions_are_rows_of_one_table():
    positions = LearnedPositions(7, 5)
    assert torch.equal(positions(3), positions.table[:3])
    assert torch.equal(positions(3, offset=4), positions.table[4:7])
    positions(2, offset=1).sum().backward()
    assert positions.table.grad.sum(-1).tolist() == [0, 5, 5, 0, 0, 0, 0]


@pytest.mark.parametrize(("n", "offset"), [(8, 0), (1, 7), (2, -1)])
def test_learned_positions_end_where_they_say(n, offset):
    with pytest.raises(ValueError, match="positions 0 to 6 have a learned"):
        LearnedPositions(7, 5)(n, offset=offset)


# --- rotation ---------------------------------------------------------------


@pytest.mark.parametrize("rotate", [rope, rope_halves])
def test_rotation_keeps_lengths_and_reads_only_the_distance(rotate, device):
    q, k = torch.randn(2, 3, 1, 6, dtype=torch.float64, device=device)
    assert_close(rotate(q, offset=17).norm(dim=-1), q.norm(dim=-1))
    near = rotate(q, offset=5) @ rotate(k, offset=2).mT
    far = rotate(q, offset=905) @ rotate(k, offset=902).mT
    assert_close(near, far, atol=1e-10, rtol=0)
    other = rotate(q, offset=6) @ rotate(k, offset=2).mT
    assert (near - other).abs().min() > 1e-3
    assert torch.equal(rotate(q), q)  # position 0 does not turn


def test_rope_turns_neighbours_by_the_angles_of_the_paper():
    x = torch.randn(3, 4, dtype=torch.float64)
    turned = rope(x, offset=2)
    for p in range(3):
        for pair in range(2):
            angle = (p + 2) * 10_000.0 ** (-2 * pair / 4)
            a, b = x[p, 2 * pair : 2 * pair + 2].tolist()
            expected = [
                a * math.cos(angle) - b * math.sin(angle),
                a * math.sin(angle) + b * math.cos(angle),
            ]
            actual = turned[p, 2 * pair : 2 * pair + 2].tolist()
            assert actual == pytest.approx(expected, abs=1e-12)


@given(n=st.integers(1, 7), half=st.integers(1, 5), offset=st.integers(0, 99))
@settings(deadline=None, derandomize=True, max_examples=25)
def test_the_two_pairings_are_one_rotation_reordered(n, half, offset):
    x = torch.randn(n, 2 * half, dtype=torch.float64)
    assert_close(
        rope_halves(pairs_to_halves(x), offset=offset),
        pairs_to_halves(rope(x, offset=offset)),
    )
    assert torch.equal(halves_to_pairs(pairs_to_halves(x)), x)


def test_reordering_a_projection_reorders_what_it_makes():
    W, x = torch.randn(6, 5), torch.randn(7, 5)
    reordered = pairs_to_halves(W.T).T
    assert_close(x @ reordered.T, pairs_to_halves(x @ W.T))


@pytest.mark.parametrize("f", [rope, rope_halves, pairs_to_halves])
def test_an_odd_number_of_features_has_no_pairs(f):
    with pytest.raises(ValueError, match=r"must be even, but x is \(3, 5\)"):
        f(torch.randn(3, 5))
    with pytest.raises(ValueError, match="must be even"):
        halves_to_pairs(torch.randn(3, 5))


@pytest.mark.parametrize("base", [10_000.0, 500_000.0])
def test_rope_halves_against_llama(base):
    config = LlamaConfig(
        hidden_size=24,
        num_attention_heads=3,
        rope_parameters={"rope_type": "default", "rope_theta": base},
    )
    q, k = torch.randn(2, 2, 3, 7, 8)
    where = torch.arange(4, 11)[None]
    cos, sin = llama.LlamaRotaryEmbedding(config)(q, where)
    their_q, their_k = llama.apply_rotary_pos_emb(q, k, cos, sin)
    assert_close(rope_halves(q, base=base, offset=4), their_q)
    assert_close(rope_halves(k, base=base, offset=4), their_k)
    assert (rope(q, base=base, offset=4) - their_q).abs().max() > 0.1


def test_rope_halves_against_gpt_neox_on_a_quarter_of_the_features():
    config = GPTNeoXConfig(hidden_size=48, num_attention_heads=3)
    rotated = int(16 * config.rope_parameters["partial_rotary_factor"])
    q = torch.randn(2, 3, 7, 16)
    cos, sin = neox.GPTNeoXRotaryEmbedding(config)(q, torch.arange(7)[None])
    theirs, _ = neox.apply_rotary_pos_emb(q, q, cos, sin)
    assert rotated == 4
    ours = torch.cat((rope_halves(q[..., :rotated]), q[..., rotated:]), -1)
    assert_close(ours, theirs)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_rotation_in_half_precision_turns_by_exact_angles(dtype):
    """Angles made in half precision are wrong by radians at position 3000."""
    x = torch.randn(5, 8).to(dtype)
    turned = rope(x, offset=3000)
    assert turned.dtype == dtype
    exact = rope(x.double(), offset=3000)
    room = 3 * torch.finfo(dtype).eps * x.abs().max().item()
    assert_close(turned.double(), exact, atol=room, rtol=0)


# --- ALiBi and T5 -----------------------------------------------------------


@pytest.mark.parametrize("n_heads", [1, 2, 3, 8, 11, 12])
def test_alibi_against_bloom(n_heads):
    """Bloom adds slope times key position: the same up to a row constant."""
    n = 7
    theirs = build_alibi_tensor(
        torch.ones(1, n, dtype=torch.int64), n_heads, torch.float32
    )
    ours = alibi_bias(n_heads, n, n)
    past = causal_mask(n, n)
    relative = theirs - theirs[..., -1:] + ours[:, -1:, -1:]
    assert_close(ours[:, -1:], relative)
    scores = torch.randn(n_heads, n, n)
    a = (scores + theirs).masked_fill(~past, -torch.inf).softmax(-1)
    b = (scores + ours).masked_fill(~past, -torch.inf).softmax(-1)
    assert_close(a, b)


def test_alibi_slopes_of_eight_heads_halve():
    assert alibi_slopes(8).tolist() == [2.0**-i for i in range(1, 9)]
    with pytest.raises(ValueError, match="there must be a head"):
        alibi_slopes(0)


def test_alibi_puts_the_last_query_on_the_last_key():
    assert torch.equal(alibi_bias(3, 2, 7), alibi_bias(3, 7, 7)[:, -2:])
    assert alibi_bias(3, 7, 7)[1, 2].argmax() == 2
    assert torch.equal(
        alibi_bias(3, 7, 7), alibi_bias(3, 7, 7).transpose(-1, -2)
    )


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("n_buckets", "far"), [(32, 128), (6, 11), (16, 50)])
def test_t5_buckets_against_t5(causal, n_buckets, far):
    distance = torch.arange(-300, 301)
    theirs = T5Attention._relative_position_bucket(
        distance,
        bidirectional=not causal,
        num_buckets=n_buckets,
        max_distance=far,
    )
    ours = t5_bucket(
        distance, causal=causal, n_buckets=n_buckets, max_distance=far
    )
    assert torch.equal(ours, theirs)


@pytest.mark.parametrize("causal", [False, True])
def test_t5_bias_against_t5(causal):
    config = T5Config(d_model=15, d_kv=5, num_heads=3, is_decoder=causal)
    theirs = T5Attention(config, has_relative_attention_bias=True, layer_idx=0)
    ours = T5Bias(3, causal=causal)
    ours.table.data.copy_(theirs.relative_attention_bias.weight)
    assert_close(ours(7, 7), theirs.compute_bias(7, 7)[0])
    assert_close(ours(2, 7), ours(7, 7)[:, -2:])


def test_t5_attention_whole_against_t5():
    """T5 does not scale its scores; ours must be told so."""
    config = T5Config(d_model=15, d_kv=5, num_heads=3, dropout_rate=0.0)
    theirs = T5Attention(config, has_relative_attention_bias=True).eval()
    x = torch.randn(2, 7, 15)
    bias = T5Bias(3)
    bias.table.data.copy_(theirs.relative_attention_bias.weight)
    q, k, v = (
        w(x).unflatten(-1, (3, 5)).transpose(1, 2)
        for w in (theirs.q, theirs.k, theirs.v)
    )
    ours = attention(q, k, v, bias=bias(7, 7), scale=1.0)
    merged = theirs.o(ours.transpose(1, 2).flatten(-2))
    assert_close(merged, theirs(x)[0])


@pytest.mark.parametrize(
    "options",
    [{"n_buckets": 2}, {"n_buckets": 1, "causal": True}, {"max_distance": 8}],
)
def test_t5_buckets_that_cannot_be_are_refused(options):
    with pytest.raises(ValueError, match="must hold one distance each"):
        t5_bucket(torch.arange(3), **options)


# --- Shaw and Transformer-XL ------------------------------------------------


def shaw_by_loop(layer, q, k, v):
    """The formula of the paper, one pair of tokens at a time."""
    n_q, n_k, limit = q.shape[-2], k.shape[-2], layer.max_distance
    output = torch.zeros(*q.shape[:-1], v.shape[-1], dtype=q.dtype)
    for i in range(n_q):
        scores, values = [], []
        for j in range(n_k):
            away = max(-limit, min(limit, j - (i + n_k - n_q))) + limit
            key = k[..., j, :] + layer.for_keys[away]
            scores.append((q[..., i, :] * key).sum(-1) / 5**0.5)
            values.append(v[..., j, :] + layer.for_values[away])
        weights = torch.stack(scores, -1).softmax(-1)
        output[..., i, :] = (weights[..., None] * torch.stack(values, -2)).sum(
            -2
        )
    return output


def xl_by_loop(layer, q, k, v):
    """The four terms of the paper, one pair of tokens at a time."""
    n_q, n_k = q.shape[-2], k.shape[-2]
    scores = torch.zeros(*q.shape[:-1], n_k, dtype=q.dtype)
    u, w = layer.u[:, 0], layer.w[:, 0]
    for i in range(n_q):
        for j in range(n_k):
            r = sinusoidal(1, 5, offset=i + n_k - n_q - j)[0].to(q)
            place = layer.W_r @ r  # (n_heads, d)
            query, key = q[..., i, :], k[..., j, :]
            scores[..., i, j] = (
                (query * key).sum(-1)
                + (query * place).sum(-1)
                + (u * key).sum(-1)
                + (w * place).sum(-1)
            )
    return (scores / 5**0.5).softmax(-1) @ v


def test_relative_attention_is_the_formula_pair_by_pair(scorer, qkv):
    loop = shaw_by_loop if isinstance(scorer, ShawAttention) else xl_by_loop
    q, k, v = (x.detach().cpu() for x in qkv)
    scorer = scorer.cpu()
    assert_close(scorer(q, k, v), loop(scorer, q, k, v))


def test_relative_attention_reads_only_distances(scorer, square):
    """Put three more tokens in front: what is masked away moves nothing."""
    more = [torch.cat((x[..., :3, :], x), dim=-2) for x in square[:2]]
    v = torch.randn(2, 3, 11, 13).to(square[0])
    hidden = torch.arange(14, device=v.device) >= 3
    shifted = scorer(
        more[0], more[1], torch.cat((v[..., :3, :], v), -2), mask=hidden[None]
    )
    assert_close(shifted[..., 3:, :], scorer(square[0], square[1], v))


def test_relative_attention_feels_order(scorer, square):
    q, k, _ = square
    v = torch.randn(2, 3, 11, 13).to(q)
    order = torch.randperm(11, device=q.device)
    moved = scorer(q, k[..., order, :], v[..., order, :])
    assert (moved - scorer(q, k, v)).abs().max() > 0.01


def test_relative_attention_keeps_the_contract(scorer, qkv, device):
    q, k, v = qkv
    before = [x.detach().clone() for x in qkv]
    mask = padding_mask(torch.tensor([11, 4], device=device), 11)
    bias = torch.randn(3, 7, 11, dtype=torch.float64, device=device)
    out = scorer(q, k, v, mask=mask, bias=bias, causal=True)
    weights = scorer.weights(q, k, mask=mask, bias=bias, causal=True)
    assert out.shape == (2, 3, 7, 13)
    assert (weights[1, ..., 4:] == 0).all()
    assert (weights[..., 0, 5:] == 0).all()
    assert_close(weights.sum(-1), torch.ones_like(weights.sum(-1)))
    plain = scorer.weights(q, k, mask=mask, causal=True)
    assert (plain - weights).abs().max() > 0.01  # the bias was used
    for grad in torch.autograd.grad(out.square().sum(), qkv):
        assert grad.isfinite().all()
    for x, old in zip(qkv, before, strict=True):
        assert torch.equal(x, old)


def test_relative_attention_gives_zeros_for_a_query_that_sees_nothing(
    scorer, qkv
):
    mask = torch.ones(7, 11, dtype=torch.bool, device=qkv[0].device)
    mask[2] = False
    out = scorer(*qkv, mask=mask)
    assert (out[..., 2, :] == 0).all()
    for grad in torch.autograd.grad(out.square().sum(), qkv):
        assert grad.isfinite().all()


def test_with_empty_tables_shaw_is_plain_attention(qkv):
    layer = ShawAttention(5, 13, max_distance=3).double().to(qkv[0].device)
    for p in layer.parameters():
        torch.nn.init.zeros_(p)
    assert_close(layer(*qkv, causal=True), attention(*qkv, causal=True))


def test_with_no_place_transformer_xl_is_plain_attention(qkv):
    layer = TransformerXLAttention(3, 5).double().to(qkv[0].device)
    torch.nn.init.zeros_(layer.W_r)
    expected = attention_steps(*qkv)
    assert_close(layer(*qkv), expected.output)
    assert_close(layer.weights(*qkv[:2]), expected.weights)


def test_transformer_xl_wants_its_number_of_heads():
    layer = TransformerXLAttention(3, 5)
    x = torch.randn(2, 7, 5)
    with pytest.raises(ValueError, match=r"n_heads, n_q, d.*\(2, 7, 5\)"):
        layer(x, x, x)


# Types, and numbers at the edge


@pytest.mark.parametrize("attend", ["shaw", "transformer-xl"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.usefixtures("unchecked")
def test_half_precision_errs_no_more_than_pytorchs_own(attend, dtype):
    """Scores and weights in half precision erred up to 45 times as much."""
    layer = ShawAttention(16, max_distance=9)
    if attend == "transformer-xl":
        layer = TransformerXLAttention(3, 16)
    for p in layer.parameters():
        torch.nn.init.normal_(p)
        p.data = p.data.to(dtype)
    given = [x.to(dtype) for x in torch.randn(3, 2, 3, 64, 16)]

    def results(layer, inputs):
        inputs = [x.detach().requires_grad_() for x in inputs]
        output = layer(*inputs)
        g = torch.sin(torch.arange(output.numel())).view(output.shape)
        into = [*inputs, *layer.parameters()]
        return [output, *torch.autograd.grad(output, into, g.to(output))]

    ours = results(layer, given)
    truth = results(layer.double(), [x.double() for x in given])
    for actual, exact in zip(ours, truth, strict=True):
        once = (exact.to(dtype).double() - exact).abs().max()
        # Rounded on the way in, the output and its gradient: four times, at
        # most, what rounding the result alone costs.
        assert (actual.double() - exact).abs().max() <= 4 * once


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_table_of_buckets_learns_in_half_precision(dtype):
    """The gradient of a bucket is the sum over its pairs: it stalled."""
    layer = T5Bias(1).to(dtype)
    layer(70, 70).sum().backward()
    i, j = torch.meshgrid(torch.arange(70), torch.arange(70), indexing="ij")
    counts = t5_bucket(j - i).flatten().bincount(minlength=32).to(dtype)
    assert torch.equal(layer.table.grad[:, 0], counts)


def test_values_of_another_width_are_refused():
    """A width of 1 was broadcast, to an output five wide."""
    q, v = torch.randn(7, 4), torch.randn(7, 1)
    with pytest.raises(ValueError, match=r"v must have 5 features, .+7, 1"):
        ShawAttention(4, 5, max_distance=2)(q, q, v)


def test_no_tokens_are_no_error():
    q = torch.randn(2, 3, 0, 4)
    assert TransformerXLAttention(3, 4)(q, q, q).shape == q.shape
    assert ShawAttention(4, max_distance=2)(q, q, q).shape == q.shape


@pytest.mark.parametrize("rotate", [rope, rope_halves])
@pytest.mark.parametrize("dtype", [torch.int64, torch.complex64])
@pytest.mark.usefixtures("unchecked")
def test_only_floats_are_rotated(rotate, dtype):
    """Whole numbers came out truncated: cosines of 0 and 1."""
    with pytest.raises(ValueError, match=r"x must be .*floating-point"):
        rotate(torch.ones(3, 4).to(dtype))


@pytest.mark.parametrize("base", [0, -2.0])
def test_a_base_is_positive(base):
    """The angles were NaN, or infinite."""
    for make in (
        lambda: sinusoidal(3, 4, base=base),
        lambda: rope(torch.ones(3, 4), base=base),
    ):
        with pytest.raises(
            ValueError, match=f"base must be .+ but it is {base}"
        ):
            make()


def test_fewer_than_no_positions_are_refused():
    """They gave all but the last."""
    with pytest.raises(ValueError, match=r"n must be .+ but it is -1"):
        LearnedPositions(8, 6)(-1)


@pytest.mark.parametrize("dtype", [torch.int8, torch.int16, torch.int32])
def test_buckets_of_short_integers(dtype):
    """-128 has no opposite in int8, and was near."""
    distance = torch.arange(-128, 128)
    expected = t5_bucket(distance)
    assert torch.equal(t5_bucket(distance.to(dtype)).long(), expected)
    ahead = torch.arange(256)
    found = t5_bucket(ahead.to(torch.uint8)).long()
    assert torch.equal(found, t5_bucket(ahead))


@pytest.mark.parametrize("default", [torch.float64, torch.float16])
def test_the_default_type_decides_no_position(default):
    distance = torch.arange(-300, 300)
    before = t5_bucket(distance), alibi_bias(6, 5, 7), sinusoidal(5, 7)
    torch.set_default_dtype(default)
    try:
        after = t5_bucket(distance), alibi_bias(6, 5, 7), sinusoidal(5, 7)
    finally:
        torch.set_default_dtype(torch.float32)
    for x, y in zip(before, after, strict=True):
        assert x.dtype == y.dtype
        assert torch.equal(x, y)


def test_distances_are_of_queries_that_fit():
    """Queries of any width were taken, whose weights are then refused."""
    attend = ShawAttention(5, max_distance=3)
    with pytest.raises(ValueError, match="q must have 5 features"):
        attend.distances(torch.zeros(7, 4), torch.zeros(7, 4))


def test_an_odd_number_of_buckets_is_for_one_direction():
    with pytest.raises(ValueError, match="n_buckets must be even unless"):
        t5_bucket(torch.arange(-5, 6), n_buckets=33)
    assert t5_bucket(torch.tensor([-999]), n_buckets=33, causal=True) == 32


@pytest.mark.parametrize("where", ["q", "layer"])
@pytest.mark.parametrize(
    "attend",
    [ShawAttention(4, max_distance=2), TransformerXLAttention(2, 4)],
)
def test_queries_elsewhere_than_the_layer_are_named(attend, where):
    x = torch.randn(3, 1, 2, 5, 4)
    if where == "q":
        x = x.to("meta")
    else:
        attend = copy.deepcopy(attend).to("meta")
    with pytest.raises(ValueError, match=r"must be where the layer is"):
        attend(*x)


@pytest.mark.parametrize("offset", [2**63, -(2**60)])
def test_an_offset_that_no_number_holds_is_refused(unchecked, offset):
    for place in (
        lambda: sinusoidal(2, 4, offset=offset),
        lambda: rope(torch.ones(2, 4), offset=offset),
        lambda: rope_halves(torch.ones(2, 4), offset=offset),
    ):
        with pytest.raises(ValueError, match="offset must be a whole number"):
            place()


@pytest.mark.parametrize(
    ("base", "offset"),
    [(1e-320, 0), (5e-324, 1), (1e-4, 2**30), (0.5, -(2**37)), (1e4, 2**53)],
)
def test_an_angle_beyond_the_digits_of_float64_is_refused(base, offset):
    """A base next to 0 made NaN of it, and others noise: numbers that look
    like any, of a position that nobody can tell from the next.
    """
    for place in (
        lambda: sinusoidal(2, 64, base=base, offset=offset),
        lambda: rope(torch.ones(2, 64), base=base, offset=offset),
        lambda: rope_halves(torch.ones(2, 64), base=base, offset=offset),
    ):
        with pytest.raises(ValueError, match=f"angles must be .+base={base}"):
            place()


@pytest.mark.parametrize(
    ("base", "offset", "d"),
    [(1e-9, 0, 3), (0.5, 2**31, 8), (1e4, 2**32 - 2, 64), (1e300, -9, 64)],
)
def test_every_angle_that_is_answered_is_right(base, offset, d):
    """In fifty digits: what is left of each angle over whole turns."""
    found = sinusoidal(2, d, base=base, offset=offset)
    with localcontext() as context:
        context.prec = 50
        for p in range(2):
            for i in range(0, d, 2):
                power = Decimal(base) ** (Decimal(-i) / d)
                angle = float((offset + p) * power % TURN)
                assert abs(found[p, i].item() - math.sin(angle)) < 1e-6


@given(st.integers(1, 9), st.floats(-300, 4), st.integers(0, 40))
def test_whether_an_angle_is_too_large_is_told_by_the_largest(d, power, far):
    """Two features turn by the position alone, whatever the base, and were
    refused for a small one; of an odd d, what is too large got through.
    """
    base, offset = 10.0**power, 2**far
    fastest = max(0.0, -power) * ((d + 1) // 2 * 2 - 2) / d
    digits = fastest + math.log10(offset) - math.log10(2**32)
    assume(abs(digits) > 1e-6)  # and not at the very edge
    if digits > 0:
        with pytest.raises(ValueError, match="angles must be"):
            sinusoidal(1, d, base=base, offset=offset)
    else:
        assert sinusoidal(1, d, base=base, offset=offset).isfinite().all()
