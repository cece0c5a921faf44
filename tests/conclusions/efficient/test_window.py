"""Where the conclusions of the page on windows hold."""

from statistics import median

import torch
from torch.testing import assert_close

from selfattn import attention, sliding_window_attention

HOPS = ("hop 2", "hop 3")


def test_a_window_as_long_as_the_text_hides_nothing():
    for n in (1, 5, 70):
        q, k, v = torch.randn(3, n, 8, dtype=torch.float64)
        for window in (n, n + 1, 10 * n):
            for causal in (False, True):
                near = sliding_window_attention(
                    q, k, v, window=window, causal=causal
                )
                assert_close(near, attention(q, k, v, causal=causal))


def test_each_layer_reaches_one_window_less_one_further():
    x = torch.randn(60, 4, dtype=torch.float64, requires_grad=True)
    for w in (1, 2, 5, 7):
        y = x
        for layers in range(1, 6):
            y = sliding_window_attention(y, y, y, window=w, causal=True)
            [slope] = torch.autograd.grad(y[-1].sum(), x, retain_graph=True)
            heard = slope.abs().sum(dim=-1) > 0
            assert heard.sum() == layers * (w - 1) + 1
            assert heard[-(layers * (w - 1) + 1) :].all()


def numbers(runs, name, **setting):
    """One number of each run in a setting."""
    found = [run[name] for run in runs if setting.items() <= run.items()]
    assert len(found) == 5
    return found


def test_a_window_that_is_put_in_costs_more(setting, runs):
    steps = setting["steps"]
    put_in = numbers(runs, f"within 4, {steps}", window=0)
    trained = numbers(runs, f"loss, {steps}", window=4)
    assert max(trained) < min(put_in)


def test_within_a_window_it_learns_sooner(setting, runs):
    steps = setting["steps"]
    full = numbers(runs, f"loss, {steps}", window=0)
    near = numbers(runs, f"loss, {steps}", window=4)
    assert median(near) < median(full)


def test_the_first_letter_beside_the_window_is_no_help(setting, runs):
    name = f"within {setting['put_in']}{{}}, {setting['steps']}"
    alone = numbers(runs, name.format(""))
    kept = numbers(runs, name.format(", first kept"))
    assert median(kept) > median(alone) - 0.01


def test_beyond_a_window_fewer_are_found_than_within(setting, runs):
    steps = setting["steps"]
    for arm, reached in (("both sides", 3), ("causal", 2)):
        shares = [
            median(numbers(runs, f"hop {hop}, {steps}", arm=arm))
            for hop in range(1, reached + 1)
        ]
        assert shares == sorted(shares, reverse=True)
        assert shares[0] > shares[1] + 0.1


def test_a_global_token_finds_all_and_a_full_layer_finds_more(setting, runs):
    steps = setting["steps"]
    for hop in HOPS:
        name = f"{hop}, {steps}"
        found = {
            arm: median(numbers(runs, name, arm=arm))
            for arm in ("global", "full last", "causal")
        }
        assert found["global"] > 0.99
        assert found["full last"] > found["causal"] + 0.05
