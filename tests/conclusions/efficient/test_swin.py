"""Where the conclusions of the page on Swin hold."""

import math
from statistics import median

import torch
from torch.testing import assert_close

from selfattn import attention, swin_attention
from selfattn.efficient.swin import swin_bias, swin_mask

GRIDS = ((6, 10), (5, 11), (8, 8))


def some(grid, d=4):
    """Queries, keys and values of a picture's tokens."""
    return torch.randn(3, math.prod(grid), d, dtype=torch.float64)


def test_one_window_for_all_is_attention():
    for grid in GRIDS:
        q, k, v = some(grid)
        side = max(grid)
        for M in (side, side + 3):
            offsets = torch.randn(2 * M - 1, 2 * M - 1, dtype=torch.float64)
            where = {"grid": grid, "window": (M, M)}
            assert_close(swin_attention(q, k, v, **where), attention(q, k, v))
            near = swin_attention(q, k, v, relative_bias=offsets, **where)
            bias = swin_bias(offsets, grid)
            assert_close(near, attention(q, k, v, bias=bias))


def test_without_a_shift_windows_never_meet():
    for grid, M in zip(GRIDS, (2, 4, 3), strict=True):
        mask = swin_mask(grid, (M, M))
        paths = torch.linalg.matrix_power(mask.double(), 9) > 0
        assert torch.equal(paths, mask) and not mask.all()
        order = mask.int().argmax(dim=-1).argsort(stable=True)
        sizes = mask.int().argmax(dim=-1).unique(return_counts=True)[1]
        blocks = [torch.ones(size, size) for size in sizes.tolist()]
        blocks = torch.block_diag(*blocks).bool()
        assert torch.equal(mask[order][:, order], blocks)


def by_windows(x, M):
    """A picture cut evenly: (windows, M M, ...)."""
    x = x.unflatten(0, (-1, M)).unflatten(2, (-1, M))
    return x.transpose(1, 2).flatten(0, 1).flatten(1, 2)


def test_rolled_and_masked_is_cut_off():
    """Who sees whom is the same, and so is what follows from it."""
    for grid, M in (((6, 9), 3), ((8, 12), 4), ((10, 5), 5)):
        n = math.prod(grid)
        token = torch.arange(n).view(*grid)
        for a in range(M):
            rows, columns = (torch.arange(size) - a for size in grid)
            number = rows[:, None] // M * (n + 1) + columns // M
            rolled = [x.roll((-a, -a), (0, 1)) for x in (token, number)]
            seen = torch.zeros(n, n, dtype=torch.bool)
            parts = (by_windows(x, M) for x in rolled)
            for tokens, numbers in zip(*parts, strict=True):
                same = numbers[:, None] == numbers
                seen[tokens[:, None], tokens] = same
            assert torch.equal(seen, swin_mask(grid, (M, M), (a, a)))


def reach(M, a, layers, rows=60):
    """How many of a column of tokens each hears; also from outside in."""
    masks = [
        swin_mask((rows, 1), (M, 1), (a if layer % 2 else 0, 0)).double()
        for layer in range(layers)
    ]
    heard = torch.eye(rows, dtype=torch.float64)
    for mask in masks:
        heard = mask @ heard
    return (heard > 0).sum(dim=-1)[rows // 3 : -rows // 3]


def test_each_layer_adds_a_window_along_each_side():
    """Both sides alike, and rows do not mix with columns: along one."""
    for M in range(2, 8):
        for a in range(1, M):
            for layers in (1, 2, 3):
                assert (reach(M, a, layers) == M * layers).all()
        assert (reach(M, 0, 3) == M).all()


def test_some_touching_at_a_corner_never_share_a_window():
    for M in (2, 3, 4, 6, 7):
        side = 3 * M + 1
        masks = [swin_mask((side, side), (M, M), (a, a)) for a in (0, M // 2)]
        met = (masks[0] | masks[1]).view(side, side, side, side)
        i = torch.arange(M, 2 * M)
        r, c = i[:, None].expand(M, M), i.expand(M, M)
        assert (~met[r, c, r + 1, c + 1]).sum() == 2
        assert (~met[r, c + 1, r + 1, c]).sum() == 2
        assert met[r, c, r, c + 1].all() and met[r, c, r + 1, c].all()


def numbers(runs, name, **setting):
    """One number of each run in a setting."""
    found = [run[name] for run in runs if setting.items() <= run.items()]
    assert len(found) == 5
    return found


def middle(runs, name, **setting):
    """The median of five seeds."""
    return median(numbers(runs, name, **setting))


def put_in_cost(setting, runs, arm, steps):
    """What windows put into a trained model add to its loss."""
    name = f"put in {arm} {setting['window']}, loss, {steps}"
    own = middle(runs, f"loss, {steps}", arm="full")
    return middle(runs, name, arm="full") - own


def test_windows_put_in_cost_more_in_the_end(setting, runs):
    for arm in ("shifted", "fixed"):
        before, after = (
            put_in_cost(setting, runs, arm, steps) for steps in (40, 160)
        )
        assert before < after


def test_trained_in_windows_it_is_ahead_of_put_in(setting, runs):
    loss = f"loss, {setting['steps']}"
    for arm in ("shifted", "fixed"):
        put = f"put in {arm} {setting['window']}, {loss}"
        assert middle(runs, loss, arm=arm) < middle(runs, put, arm="full")


def test_trained_with_the_shift_it_is_ahead(setting, runs):
    name = f"loss, {setting['steps']}"
    shifted, fixed = (
        middle(runs, name, arm=arm) for arm in ("shifted", "fixed")
    )
    assert shifted < fixed


def test_more_neighbours_are_found_across_a_border(setting, runs):
    """And the failures of the one without a shift move with its windows."""
    steps = setting["steps"]
    for offset in ("right", "diagonal"):
        across, shifted = (
            numbers(runs, f"across, {steps}", arm=arm, offset=offset)
            for arm in ("fixed", "shifted")
        )
        assert max(across) < min(shifted)
        freed, caught = (
            numbers(runs, f"{name}, {steps}", arm="fixed", offset=offset)
            for name in ("freed", "caught")
        )
        assert max(caught) < min(freed) and max(caught + across) < 0.18


def test_those_that_share_no_window_are_guessed(setting, runs):
    steps = setting["steps"]
    neither, freed = (
        numbers(runs, f"{name}, {steps}", arm="shifted", offset="diagonal")
        for name in ("neither", "freed")
    )
    assert max(neither) < 0.18 < min(freed)
