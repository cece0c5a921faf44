"""Where the conclusions of the page on sparse patterns hold."""

import math
from statistics import median

import torch
from torch.testing import assert_close

from selfattn import attention, fixed_attention, strided_attention
from selfattn.efficient.sparse import strided_mask
from selfattn.masks import causal_mask

BOTH = (strided_attention, fixed_attention)
PATTERNS = ("strided", "fixed")


def test_two_layers_bring_every_token_all_of_its_past():
    n = 31
    for attend in BOTH:
        for stride in (1, 2, 5, 6, 13, 31, 40):
            x = torch.randn(n, 4, dtype=torch.float64, requires_grad=True)
            y = x
            for _ in range(2):
                y = attend(y, y, y, stride=stride, causal=True)
            for i in (0, 1, stride, 17, n - 1):
                total = y[min(i, n - 1)].sum()
                [slope] = torch.autograd.grad(total, x, retain_graph=True)
                heard = slope.abs().sum(dim=-1) > 0
                assert heard[: min(i, n - 1) + 1].all()
                assert not heard[min(i, n - 1) + 1 :].any()


def test_at_a_stride_of_one_and_of_the_text_nothing_is_hidden():
    for n in (1, 7, 90):
        q, k, v = torch.randn(3, n, 8, dtype=torch.float64)
        for attend in BOTH:
            for stride in (1, n, n + 3):
                for causal in (False, True):
                    few = attend(q, k, v, stride=stride, causal=causal)
                    assert_close(few, attention(q, k, v, causal=causal))


def test_the_cheapest_stride_is_the_root_of_half_the_length():
    def pairs(n, stride):
        places = range(n)
        return sum(min(i + 1, stride) + i // stride for i in places)

    mask = strided_mask(60, 60, 7) & causal_mask(60, 60)
    assert pairs(60, 7) == mask.sum()
    for n in (128, 450, 1058):
        root = math.sqrt(n / 2)
        least = min(range(1, n), key=lambda stride: pairs(n, stride))
        assert abs(least - root) <= 2
        assert pairs(n, round(2 * root)) > 1.15 * pairs(n, round(root))


def middle(runs, name, **setting):
    """The median of one number in a setting."""
    found = [run[name] for run in runs if setting.items() <= run.items()]
    assert len(found) == 5
    return median(found)


def test_by_way_of_another_fewer_are_right(setting, runs):
    for pattern in PATTERNS:
        direct, by_way = (
            middle(runs, f"{name}, {setting['steps']}", pattern=pattern)
            for name in ("direct", "by way")
        )
        assert by_way < direct - 0.05
    full = (
        middle(runs, f"{name}, 400", pattern="full")
        for name in ("direct", "by way")
    )
    assert min(full) > 0.97


def test_told_beforehand_it_arrives(setting, runs):
    name = f"by way, {setting['steps']}"
    for pattern in PATTERNS:
        alone = middle(runs, name, pattern=pattern, told=False)
        told = middle(runs, name, pattern=pattern, told=True)
        assert told > alone + 0.2


def losses(runs, name, pattern):
    """One number of each seed."""
    found = [run[name] for run in runs if run["pattern"] == pattern]
    assert len(found) == 5
    return found


def test_a_pattern_that_is_put_in_costs_more(setting, runs):
    for pattern in PATTERNS:
        steps = setting["steps"]
        put_in = losses(runs, f"{pattern} put in, {steps}", "full")
        trained = losses(runs, f"loss, {steps}", pattern)
        assert max(trained) < min(put_in)


def test_with_a_pattern_it_learns_sooner(setting, runs):
    name = f"loss, {setting['steps']}"
    full = median(losses(runs, name, "full"))
    for pattern in PATTERNS:
        assert median(losses(runs, name, pattern)) < full
