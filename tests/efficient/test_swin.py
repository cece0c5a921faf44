"""Swin is the definition with its windows' mask, on any grid."""

import math
from functools import partial

import pytest
import torch
from mechanisms import assert_differentiated_once
from same import assert_same
from torch.autograd import gradcheck
from torch.testing import assert_close
from transformers import SwinConfig
from transformers.models.swin.modeling_swin import (
    SwinLayer,
    window_partition,
    window_reverse,
)

from selfattn.cost import flops, largest_bytes, log_log_slope, peak_bytes
from selfattn.dot_product import attention
from selfattn.efficient.swin import swin_attention, swin_bias, swin_mask
from selfattn.multihead import MultiHeadAttention

# Grid, window and shift; grids that divide and grids that do not, grids that
# a window does not fit into, along one side or both, and none at all.
CUTS = [
    ((6, 10), (2, 5), (0, 0)),
    ((6, 10), (2, 5), (1, 2)),
    ((5, 11), (2, 4), (1, 3)),
    ((5, 11), (3, 3), (0, 0)),
    ((13, 7), (3, 2), (0, 1)),
    ((7, 3), (2, 5), (1, 4)),
    ((3, 2), (7, 7), (3, 3)),
    ((1, 11), (1, 3), (0, 2)),
    ((5, 1), (1, 1), (0, 0)),
    ((3, 5), (50, 50), (49, 0)),
    ((0, 3), (2, 2), (1, 1)),
]
where = pytest.mark.parametrize(("grid", "window", "shift"), CUTS)


def some(grid, *, device="cpu", axes=(2, 3)):
    """Queries, keys and values, of widths 5, 5 and 7."""
    n = math.prod(grid)
    return tuple(
        torch.randn(*axes, n, d, device=device).double().requires_grad_()
        for d in (5, 5, 7)
    )


def numbers(window, *, heads=(3,), device="cpu"):
    """A number for each offset within a window."""
    size = (*heads, 2 * window[0] - 1, 2 * window[1] - 1)
    return torch.randn(size, device=device).double().requires_grad_()


# What it computes


@where
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("biased", [False, True])
def test_any_grid_with_any_windows(
    device, grid, window, shift, causal, biased
):
    """In value and gradient, the numbers of the offsets among them."""
    inputs = some(grid, device=device)
    learned = numbers(window, device=device) if biased else None
    near = swin_attention(
        *inputs,
        grid=grid,
        window=window,
        shift=shift,
        relative_bias=learned,
        causal=causal,
    )
    expected = attention(
        *inputs,
        mask=swin_mask(grid, window, shift, device=device),
        bias=swin_bias(learned, grid) if biased else None,
        causal=causal,
    )
    assert_same(near, expected, (*inputs, learned) if biased else inputs)


def published(grid, window, shift):
    """The mask of the paper's own code: regions, rolled and cut up."""
    (rows, columns), (h, w), (down, right) = grid, window, shift
    region = torch.zeros(rows, columns)
    number = 0
    for i in (slice(-h), slice(-h, -down or None), slice(-down, None)):
        for j in (slice(-w), slice(-w, -right or None), slice(-right, None)):
            region[i, j] = number
            number += 1

    def cut_up(x):
        x = x.view(rows // h, h, columns // w, w)
        return x.transpose(1, 2).reshape(-1, h * w)

    token = torch.arange(rows * columns).view(rows, columns)
    token = cut_up(token.roll((-down, -right), dims=(0, 1)))
    mask = torch.zeros(rows * columns, rows * columns, dtype=torch.bool)
    for tokens, regions in zip(token, cut_up(region), strict=True):
        mask[tokens[:, None], tokens] = regions[:, None] == regions
    return mask


@pytest.mark.parametrize(
    ("grid", "window", "shift"),
    [
        ((6, 10), (3, 5), (0, 0)),
        ((6, 10), (3, 5), (1, 2)),
        ((42, 70), (7, 7), (3, 3)),
        ((10, 6), (5, 2), (2, 1)),
        ((9, 4), (3, 2), (2, 1)),
    ],
)
def test_the_mask_is_the_published_one_where_that_is_right(
    grid, window, shift
):
    expected = published(grid, window, shift)
    assert torch.equal(swin_mask(grid, window, shift), expected)


@where
def test_the_mask_cuts_the_grid_window_by_window(grid, window, shift):
    """Every token in one window, none larger than a window, none round."""
    token = torch.arange(math.prod(grid)).view(grid)
    mask = torch.zeros(token.numel(), token.numel(), dtype=torch.bool)
    seen = []
    for top in range(shift[0] - window[0], grid[0], window[0]):
        for left in range(shift[1] - window[1], grid[1], window[1]):
            rows = slice(max(0, top), max(0, top + window[0]))
            columns = slice(max(0, left), max(0, left + window[1]))
            tokens = token[rows, columns].flatten()
            mask[tokens[:, None], tokens] = True
            seen += tokens.tolist()
    assert sorted(seen) == token.flatten().tolist()
    assert torch.equal(swin_mask(grid, window, shift), mask)


def test_a_bias_is_looked_up_by_how_far_down_and_right_the_query_lies():
    window, grid = (3, 4), (3, 4)
    learned = numbers(window, heads=(2,))
    bias = swin_bias(learned, grid)
    places = [(y, x) for y in range(3) for x in range(4)]
    for i, (y, x) in enumerate(places):
        for j, (v, u) in enumerate(places):
            expected = learned[:, 2 + y - v, 3 + x - u]
            assert torch.equal(bias[:, i, j], expected)


def test_windows_as_large_as_the_grid_are_attention():
    inputs = some((5, 7))
    near = swin_attention(*inputs, grid=(5, 7), window=(5, 7))
    assert_close(near, attention(*inputs))


def test_a_window_of_one_returns_the_values():
    q, k, v = some((5, 7))
    assert_close(swin_attention(q, k, v, grid=(5, 7), window=(1, 1)), v)


def test_what_lies_outside_changes_no_bit():
    q, k, v = (x.detach() for x in some((5, 11)))
    options = {"grid": (5, 11), "window": (2, 4), "shift": (1, 3)}
    before = swin_attention(q, k, v, **options)
    place = 2 * 11 + 4  # in the window of rows 1 and 2, columns 3 to 6
    k[..., place, :], v[..., place, :] = 30.0, 1e6
    after = swin_attention(q, k, v, **options)
    moved = (after != before).any(dim=-1).all(dim=1)[0].view(5, 11)
    expected = torch.zeros(5, 11, dtype=torch.bool)
    expected[1:3, 3:7] = True
    assert torch.equal(moved, expected)


@pytest.mark.usefixtures("unchecked")
def test_derivatives_agree_with_finite_differences():
    def near(q, k, v, learned):
        return swin_attention(
            *(q, k, v),
            grid=(3, 4),
            window=(2, 3),
            shift=(1, 1),
            relative_bias=learned,
        )

    inputs = (*some((3, 4), axes=(2,)), numbers((2, 3), heads=(2,)))
    assert gradcheck(near, inputs)


def test_heads_that_broadcast_and_numbers_that_do():
    q = torch.randn(2, 1, 35, 5).double().requires_grad_()
    k = torch.randn(3, 35, 5).double().requires_grad_()
    v = torch.randn(1, 1, 35, 7).double().requires_grad_()
    options = {"grid": (5, 7), "window": (2, 3), "shift": (1, 1)}
    mask = swin_mask(**options)
    for heads in ((), (1,), (3,)):
        learned = numbers((2, 3), heads=heads)
        near = swin_attention(q, k, v, **options, relative_bias=learned)
        bias = swin_bias(learned, (5, 7))
        expected = attention(q, k, v, mask=mask, bias=bias)
        assert_same(near, expected, (q, k, v, learned))


def test_heads_that_lie_side_by_side_stay_so():
    """As a layer hands them in; then nothing is copied to merge them."""
    q = torch.randn(2, 35, 3, 5).transpose(1, 2)
    near = swin_attention(q, q, q, grid=(5, 7), window=(2, 3))
    assert near.stride() == q.stride()
    same = swin_attention(*[q.contiguous()] * 3, grid=(5, 7), window=(2, 3))
    assert_close(near, same)


def test_a_batch_of_nothing():
    q, k, v = some((3, 5), axes=(0, 2))
    near = swin_attention(q, k, v, grid=(3, 5), window=(2, 2))
    assert near.shape == (0, 2, 15, 7)


def test_the_second_derivative_is_refused_not_wrong():
    near = partial(swin_attention, grid=(1, 7), window=(1, 2))
    assert_differentiated_once(near)


def test_autocast_changes_nothing():
    inputs = [x.detach().float().requires_grad_() for x in some((5, 7))]
    learned = numbers((2, 3)).detach().float().requires_grad_()
    near = partial(
        swin_attention,
        grid=(5, 7),
        window=(2, 3),
        shift=(1, 1),
        relative_bias=learned,
    )
    expected = near(*inputs)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert_same(near(*inputs), expected, (*inputs, learned))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_with_learned_numbers(dtype):
    """They may be kept in float32; their gradient sums over the windows."""
    inputs = [x.detach().to(dtype).requires_grad_() for x in some((5, 7))]
    learned = numbers((2, 3)).detach().float().requires_grad_()
    options = {"grid": (5, 7), "window": (2, 3), "shift": (1, 1)}
    near = swin_attention(*inputs, **options, relative_bias=learned)
    mask, bias = swin_mask(**options), swin_bias(learned, (5, 7))
    expected = attention(
        *(x.double() for x in inputs), mask=mask, bias=bias.double()
    )
    assert near.dtype == dtype
    # A few roundings of the inputs' own type.
    most = 4 * torch.finfo(dtype).eps
    assert_close(near.double(), expected, atol=most, rtol=most)
    g = torch.randn(near.shape)
    [got] = torch.autograd.grad(near, learned, g.to(dtype))
    [wanted] = torch.autograd.grad(expected, learned, g.to(dtype).double())
    assert got.dtype == torch.float32
    assert_close(got, wanted, atol=8 * most, rtol=8 * most)


# Beside transformers' layer, and where that is wrong


def layers(grid, shift, window=7, d_model=24, heads=3):
    """Ours and theirs, with the same random weights."""
    config = SwinConfig(num_heads=[heads], window_size=window)
    config._attn_implementation = "sdpa"
    theirs = SwinLayer(config, d_model, grid, heads, shift_size=shift).eval()
    table = theirs.attention.relative_position_bias
    table.relative_position_bias_table.data.normal_()
    side = 2 * window - 1
    learned = table.relative_position_bias_table.detach().T
    ours = MultiHeadAttention(
        d_model,
        heads,
        projection_bias=True,
        attend=partial(
            swin_attention,
            grid=grid,
            window=(window, window),
            shift=(shift, shift),
            relative_bias=learned.reshape(heads, side, side),
        ),
    )
    for x in "qkvo":
        weights = getattr(theirs.attention, f"{x}_proj").state_dict()
        getattr(ours, f"W_{x}").load_state_dict(weights)

    def their_attention(x):
        """What their layer does between its norm and its residual."""
        image, _ = theirs.maybe_pad(x.view(len(x), *grid, d_model), *grid)
        rows, columns = image.shape[1:3]
        image = window_partition(theirs.cyclic_shift(image), window)
        mask = theirs.get_attn_mask(rows, columns, x.dtype, x.device)
        y, _ = theirs.attention(image.view(-1, window**2, d_model), mask)
        y = y.view(-1, window, window, d_model)
        y = window_reverse(y, window, rows, columns)
        y = theirs.cyclic_shift(y, reverse=True)
        return y[:, : grid[0], : grid[1]].reshape(x.shape)

    return ours, their_attention


@pytest.mark.parametrize("grid", [(14, 14), (14, 35)])
@pytest.mark.parametrize("shift", [0, 3])
def test_a_layer_is_that_of_transformers_on_grids_that_divide(grid, shift):
    ours, theirs = layers(grid, shift)
    x = torch.randn(2, math.prod(grid), 24)
    # Their mask adds -100 where ours hides; float32 rounds that away.
    assert_close(ours(x), theirs(x))


@pytest.mark.parametrize("shift", [0, 3])
def test_on_other_grids_it_attends_to_no_made_up_token(shift):
    """Theirs fills the last windows with zeros, and attends to those: the
    windows that need none agree, and all others do not.
    """
    grid = (17, 33)
    ours, theirs = layers(grid, shift)
    x = torch.randn(1, math.prod(grid), 24)
    near = ours(x)
    far = (near - theirs(x)).abs().amax(dim=-1).view(grid)
    whole = [(size - shift) // 7 * 7 + shift for size in grid]
    # Some of the others agree, too: shifted, their mask tells the zeros of
    # the rows apart, since 17 rows end with a whole window.
    right = far < 1e-5
    assert right[: whole[0], : whole[1]].all()
    assert not right.all()
    definition = partial(
        attention,
        mask=swin_mask(grid, (7, 7), (shift, shift)),
        bias=swin_bias(ours.attend.keywords["relative_bias"], grid),
    )
    ours.attend = lambda *qkv, mask, bias, causal: definition(*qkv)
    assert_close(near, ours(x))


@pytest.mark.parametrize("grid", [(45, 61), (42, 70)])
def test_opposite_edges_never_attend_to_each_other(grid):
    """Where a grid was rolled before it was filled up, they did."""
    q, k, v = some(grid, axes=(1,))
    near = swin_attention(q, k, v, grid=grid, window=(7, 7), shift=(3, 3))
    image = near.unflatten(1, grid)
    for edge, others in (
        (image[:, :, -1], (slice(None), slice(0, 7))),
        (image[:, -1], (slice(0, 7), slice(None))),
    ):
        for grad in torch.autograd.grad(edge.sum(), (k, v), retain_graph=True):
            grad = grad.unflatten(1, grid)
            assert grad.any()
            assert not grad[:, *others].any()


def test_a_small_grid_leaves_nothing_behind():
    """Their layer keeps the smaller window for the next picture."""
    x = some((14, 14))
    options = {"window": (7, 7), "shift": (3, 3)}
    before = swin_attention(*x, grid=(14, 14), **options)
    swin_attention(*some((3, 5)), grid=(3, 5), **options)
    assert torch.equal(swin_attention(*x, grid=(14, 14), **options), before)


# What it refuses


@pytest.mark.parametrize(
    ("window", "shift"),
    [((0, 3), (0, 0)), ((2, 3), (2, 0)), ((2, 3), (0, -1)), ((2, 3), (0, 3))],
)
def test_windows_of_nothing_and_shifts_past_a_window(window, shift):
    rule = f"less than its size, but window=.* and shift=.*{shift[1]}"
    options = {"window": window, "shift": shift}
    with pytest.raises(ValueError, match=rule):
        swin_attention(*some((3, 5)), grid=(3, 5), **options)
    with pytest.raises(ValueError, match=rule):
        swin_mask((3, 5), **options)


def test_tokens_that_are_not_the_grid():
    q, k, v = some((3, 5))
    rule = "must be the tokens of the grid, but the grid is"
    for given in ((q, k, v), (q[..., :8, :], k, v)):
        for grid in ((2, 4), (-3, -5)):
            with pytest.raises(ValueError, match=rule):
                swin_attention(*given, grid=grid, window=(2, 2))
    with pytest.raises(ValueError, match=rule):
        swin_attention(
            q, k[..., 1:, :], v[..., 1:, :], grid=(3, 5), window=(2, 2)
        )


@pytest.mark.parametrize(
    "size", [(3, 4, 5), (3, 3, 4), (2, 3, 5), (2, 3, 3, 5), (3, 1, 4)]
)
def test_numbers_that_are_not_one_for_each_offset(size):
    with pytest.raises(ValueError, match="a number for each offset within a"):
        swin_attention(
            *some((3, 5)),
            grid=(3, 5),
            window=(2, 3),
            relative_bias=torch.zeros(size).double(),
        )


@pytest.mark.parametrize("what", ["mask", "bias"])
def test_a_table_is_refused_with_the_reason(what):
    table = torch.ones(15, 15, dtype=torch.bool if what == "mask" else None)
    with pytest.raises(ValueError, match=f"cannot use a {what}: it makes no"):
        swin_attention(
            *some((3, 5)), grid=(3, 5), window=(2, 2), **{what: table}
        )


# What it costs


def passes(rows, *, shift=(0, 0), d=8):
    """One call with its way back, on a grid of twice as many columns."""
    n = 2 * rows * rows
    inputs = torch.randn(3, 1, 2, n, d).requires_grad_().unbind()
    learned = torch.randn(2, 7, 7, requires_grad=True)
    g = torch.randn(1, 2, n, d)

    def run():
        output = swin_attention(
            *inputs,
            grid=(rows, 2 * rows),
            window=(4, 4),
            shift=shift,
            relative_bias=learned,
        )
        return torch.autograd.grad(output, (*inputs, learned), g)

    return run


@pytest.mark.parametrize("shift", [(0, 0), (2, 2)])
@pytest.mark.usefixtures("unchecked")
def test_work_and_memory_are_linear_in_n_backwards_too(shift):
    rows = [16, 32, 64, 128]
    n = [2 * size * size for size in rows]
    runs = [passes(size, shift=shift) for size in rows]
    # Cut-off windows cost less, and are the more of them on small grids.
    assert log_log_slope(n, [flops(run) for run in runs]) < 1.05
    # What is copied at a time is bounded, and counts for more at first.
    assert log_log_slope(n, [peak_bytes(run) for run in runs]) < 1.02
    assert largest_bytes(runs[-1]) == 4 * 2 * n[-1] * 8  # like q


def test_each_window_meets_itself_and_no_more():
    """Seven products; a window that is cut off costs less, not more."""
    whole = 7 * 2 * 2 * 8 * (8 * 16) * 16**2  # 8 x 16 windows of 16 tokens
    assert flops(passes(32)) == whole
    # Moved by (2, 2): rows of 2, 7 x 4 and 2; columns of 2, 15 x 4 and 2.
    sizes = [(2 * 2 + 7 * 16 + 2 * 2), (2 * 2 + 15 * 16 + 2 * 2)]
    assert flops(passes(32, shift=(2, 2))) == 7 * 2 * 2 * 8 * math.prod(sizes)


@pytest.mark.parametrize(
    ("option", "wrong"),
    [
        *(("grid", 3), ("grid", (None, 2)), ("window", (1, 2, 3))),
        *(("window", (1.5, 2)), ("shift", "ab"), ("shift", (1,))),
        ("relative_bias", [1.0]),
    ],
)
@pytest.mark.usefixtures("unchecked")
def test_what_is_no_window_is_refused_by_name(option, wrong):
    """A third side of a window was ignored."""
    x = torch.randn(1, 6, 5)
    options = {"grid": (2, 3), "window": (2, 2), option: wrong}
    with pytest.raises(TypeError, match=rf"{option} must be a t"):
        swin_attention(x, x, x, **options)


def test_no_grid_has_fewer_rows_than_none():
    """(-2, -3) has six tokens, by the product."""
    with pytest.raises(ValueError, match=r"grid must be .*\(-2, -3\)"):
        swin_mask((-2, -3), (2, 2))
    with pytest.raises(ValueError, match="grid must be at least 0 by 0"):
        swin_bias(torch.zeros(3, 3), (-1, 2))


@pytest.mark.parametrize("size", [(2, 2), (1, 2), (0, 3), (3, 0)])
def test_offsets_without_a_middle_are_refused(size):
    with pytest.raises(
        ValueError, match=r"relative_bias must have odd .* but it is"
    ):
        swin_bias(torch.zeros(size), (1, 3))


@pytest.mark.parametrize("causal", [False, True])
def test_a_bias_that_hides_all_passes_back_nothing(causal):
    """Softmax of a row of -inf is NaN, and so was its gradient."""
    q, k, v = (torch.randn(6, 4, requires_grad=True) for _ in range(3))
    hiding = torch.full((1, 1), -math.inf)
    output = swin_attention(
        q, k, v, grid=(2, 3), window=(1, 1), relative_bias=hiding
    )
    assert not output.any()
    for grad in torch.autograd.grad(output.sum(), (q, k, v)):
        assert not grad.any()


@pytest.mark.usefixtures("unchecked")
def test_a_bias_that_is_elsewhere_is_named():
    """ "Tensor.item() cannot be called on meta tensors"."""
    x = torch.randn(1, 6, 5)
    bias = torch.zeros(3, 3, device="meta")
    with pytest.raises(ValueError, match="relative_bias must be where q is"):
        swin_attention(x, x, x, grid=(2, 3), window=(2, 2), relative_bias=bias)


@pytest.mark.parametrize(
    "make", [swin_mask, lambda grid, _: swin_bias(torch.zeros(3, 3), grid)]
)
def test_a_grid_of_more_tokens_than_can_be_counted_is_refused(make):
    """ "int too big to convert"."""
    with pytest.raises(ValueError, match="tokens must be counted in 64"):
        make((2**40, 2**40), (2, 2))
