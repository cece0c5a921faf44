"""Where the conclusions of the chapter on positions hold."""

import math
from statistics import median

import torch
from torch.testing import assert_close

from selfattn import MultiHeadAttention
from selfattn import positions as pos
from selfattn.measurements import measured

BASE = 10_000.0
LOST = 0.1  # of the answers


def draw(*shape):
    """Normal random numbers in double precision."""
    return torch.randn(*shape, dtype=torch.float64)


def test_a_layer_without_a_mask_is_equivariant():
    layer, x = MultiHeadAttention(12, 3).double(), draw(2, 7, 12)
    order = torch.randperm(7)
    assert_close(layer(x[:, order]), layer(x)[:, order])


def test_one_matrix_takes_every_row_three_places_on():
    rows = pos.sinusoidal(200, 16).double()
    angle = 3 * pos.absolute.frequencies(16, BASE)
    cos, sin = angle.cos(), angle.sin()
    blocks = torch.stack((cos, sin, -sin, cos), dim=-1).unflatten(-1, (2, 2))
    step = torch.block_diag(*blocks)
    assert_close(rows[:-3] @ step.T, rows[3:], atol=1e-6, rtol=0)


def error(width, place):
    """The worst sine of a row whose angles were made in float32."""
    pair = torch.arange(0, width, 2).float()
    speed = torch.exp(pair * (-math.log(BASE) / width))
    exact = pos.sinusoidal(1, width, offset=place)[0, 0::2]
    made = (torch.tensor(float(place)) * speed).sin()
    return (made - exact).abs().max().item()


def test_ten_times_further_costs_a_digit(setting, runs):
    """In the middle of so many places around, one beside the other."""
    near, far = (
        median(
            error(setting["width"], start + i * start // 5)
            for i in range(setting["places"])
        )
        for start in (setting["from"], 10 * setting["from"])
    )
    assert 4 < far / near < 25


def test_a_turned_score_knows_the_distance_and_its_sign():
    q, k = draw(2, 1, 16)

    def score(i, j):
        return (pos.rope(q, offset=i) * pos.rope(k, offset=j)).sum()

    for i, j in ((0, 5), (7, 3), (2, 2)):
        assert_close(score(i, j), score(i + 100, j + 100))
    assert not torch.isclose(score(0, 5), score(5, 0))


def test_a_rotation_keeps_the_spread_of_random_scores():
    """The variance of qᵀRk, of variances 1, is R's squared norm: d."""
    one = torch.eye(16).double()
    for distance in (0, 1, 10, 1000):
        R = pos.rope(one[:, None], offset=distance)[:, 0].T
        assert_close(R.square().sum(), torch.tensor(16.0).double())
        assert_close(R.T @ R, one)
    # That lengths stay is not enough: each pair's second feature is 0.
    half = torch.diag(torch.tensor([1.0, 0.0] * 8).double())  # covariance
    R = pos.rope(one[:, None], offset=1)[:, 0].T
    spread = torch.trace(R.T @ half @ R @ half)
    cos = pos.absolute.frequencies(16, BASE).cos()
    assert_close(spread, cos.square().sum())  # by pairs: ab cos ω
    assert spread < torch.trace(half @ half) - 0.5


def again(arm, setting):
    """The run of an arm with the same seed and budget."""
    (run,) = [
        run
        for run in measured("positions")["runs"]
        if run["arm"] == arm
        and (run["seed"], run["steps"]) == (setting["seed"], setting["steps"])
    ]
    return run


def test_rows_that_were_met_carry_the_task(setting, runs):
    (shifted,) = runs
    plain = again("sinusoidal", setting)
    assert plain["within"] - plain[setting["band"]] > 0.5
    assert shifted[setting["band"]] > plain[setting["band"]] + 0.5
    some = again("sinusoidal, from 0 to 32", setting)
    assert some["twice"] > 0.9  # rows that were met, to 63
    for run in (again("sinusoidal, from 0", setting), some):
        assert run["four"] + 0.2 < run["short"] < 0.9  # rows as new in both


def test_with_distances_that_were_met_nothing_is_lost(setting, runs):
    """The angles were once named: clamping all pairs does not tell them.

    Nor does the fastest pair at one place alone: at 30 it is out of step with
    three back by three tenths of a turn, at 28 it is not.
    """
    assert runs
    for run in runs:
        assert run["within"] - run["four"] > 0.02
        for clamped in ("clamped", "clamped at 28"):
            assert run["within"] - run[f"four, {clamped}"] < 0.01
        assert run["within"] - run["four, clamped pair 0"] < 0.01
        assert run["four"] - run["four, clamped pair 0 at 28"] > 0.15


def test_squeezed_without_training_it_is_lost(setting, runs):
    (run,) = runs
    assert run["within"] > 0.95
    assert run[f"{setting['band']}, squeezed"] < 0.3


def test_a_larger_base_reaches_further(setting, runs):
    (run,) = runs
    band = setting["band"]
    more = run[f"{band}, larger base"] - run[band]
    assert more > (0.02 if band == "four" else -0.01)


def test_vectors_of_shaw_reach_four_times_the_length(setting, runs):
    (run,) = runs
    assert run[setting["band"]] > 0.99
