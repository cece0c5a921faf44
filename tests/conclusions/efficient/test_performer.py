"""Where the conclusions of the page on Performer hold."""

import functools
import math

import numpy as np
import pytest
import torch

from selfattn import attention
from selfattn.random_features import log_features, random_directions

# A sum over these is a mean over a standard normal number, to many digits.
POINTS, SHARES = np.polynomial.hermite_e.hermegauss(90)
SHARES = SHARES / SHARES.sum()


def draw(*shape):
    """Normal random numbers in double precision."""
    return torch.randn(*shape, dtype=torch.float64)


def scaled_pairs(count):
    """Queries and keys that are divided by d^¼ already, of several sizes."""
    for d in (1, 3, 8):
        for scale in (0.2, 0.5, 1.0):
            for _ in range(count):
                yield scale * draw(d) / d**0.5, scale * draw(d) / d**0.5


def moments(said):
    """Mean and relative variance of a function of ω·s / |s|."""
    first = float((SHARES * said).sum())
    second = float((SHARES * said**2).sum())
    return first, second / first**2 - 1


def positive_parts(q, k):
    """Products of features, at each point along q + k."""
    s = (q + k).norm().item()
    squares = (q @ q + k @ k).item() / 2
    return np.exp(s * POINTS - squares)


def test_the_mean_of_the_products_is_the_exponential():
    for q, k in scaled_pairs(3):
        mean, _ = moments(positive_parts(q, k))
        assert mean == pytest.approx(math.exp(q @ k), rel=1e-9)
        omega = draw(200_000, len(q))
        logs = log_features(torch.stack([q, k]), omega).sum(dim=0)
        error = 5 * logs.exp().std() / 200_000**0.5
        assert abs(logs.exp().mean() - math.exp(q @ k)) < error


def test_the_relative_variance_is_that_of_query_plus_key():
    for q, k in scaled_pairs(5):
        _, variance = moments(positive_parts(q, k))
        expected = math.expm1((q + k) @ (q + k))
        assert variance == pytest.approx(expected, rel=1e-6, abs=1e-9)
        apart = (q - k).norm().item()
        squares = (q @ q + k @ k).item() / 2
        mean, variance = moments(np.cos(apart * POINTS) * math.exp(squares))
        assert mean == pytest.approx(math.exp(q @ k), rel=1e-9)
        expected = math.cosh(apart**2) - 1
        assert variance == pytest.approx(expected, rel=1e-6, abs=1e-9)


def test_no_pair_with_a_score_has_less_variance():
    for q, k in scaled_pairs(50):
        expected = math.expm1(4 * (q @ k))
        assert math.expm1((q + k) @ (q + k)) >= expected - 1e-12
        same = math.expm1((q + q) @ (q + q))  # where the two are one
        assert same == pytest.approx(math.expm1(4 * (q @ q)))


def positive(x, omega):
    """Positive features, of vectors as they come."""
    logs = log_features(x / x.shape[-1] ** 0.25, omega.to(x))
    return logs.exp() / len(omega) ** 0.5


def sines(x, omega):
    """Trigonometric features, two of each direction."""
    x = x / x.shape[-1] ** 0.25
    angles = x @ omega.to(x).T
    lengths = x.square().sum(dim=-1, keepdim=True) / 2
    waves = torch.cat([angles.sin(), angles.cos()], dim=-1)
    return waves * lengths.exp() / len(omega) ** 0.5


def inputs(scale, seed, n, d):
    """Queries, keys and values; the first two scaled."""
    generator = torch.Generator().manual_seed(seed)
    q, k, v = torch.randn(3, n, d, generator=generator).double()
    return scale * q, scale * k, v


@functools.cache
def distance(kind, m, *given, least=-math.inf):
    """Of the output to softmax attention's, over its size; the median."""
    scale, n, d, draws = given
    found = []
    for seed in range(draws):
        q, k, v = inputs(scale, seed, n, d)
        directions = m if kind is positive else m // 2
        omega = random_directions(directions, d, seed=1000 + seed)
        weights = (kind(q, omega) @ kind(k, omega).T).clamp(min=least)
        output = weights @ v / weights.sum(dim=-1, keepdim=True)
        exact = attention(q, k, v)
        found.append(((output - exact).norm() / exact.norm()).item())
    return sorted(found)[draws // 2]


def test_four_times_the_features_about_halve_the_error(setting, runs):
    given = setting["scale"], 32, setting["d"], 21
    few, many = (
        distance(positive, m, *given) for m in (setting["m"], 4 * setting["m"])
    )
    assert 1.5 < few / many < 2.6


def test_without_negative_weights_cosines_err_as_positive_ones(setting, runs):
    given = 1.0, setting["n"], setting["d"], 11
    ours, theirs = (
        distance(kind, setting["m"], *given) for kind in (positive, sines)
    )
    mended = distance(sines, setting["m"], *given, least=1e-9)
    assert theirs > 2 * ours and mended < 1.5 * ours


def test_orthogonal_directions_err_less(setting, runs):
    d, m = setting["d"], setting["blocks"] * setting["d"]
    q, k, _ = inputs(setting["scale"], 5, 16, d)
    exact = (q @ k.T / d**0.5).exp()

    def square_error(orthogonal):
        found = 0.0
        for seed in range(1000, 1060):
            omega = random_directions(m, d, seed=seed, orthogonal=orthogonal)
            off = positive(q, omega) @ positive(k, omega).T / exact - 1
            found += off.square().mean().item()
        return found

    assert square_error(True) < square_error(False)


def test_a_swap_costs_more_the_longer_a_model_was_trained_with_any_m(
    setting, runs
):
    (run,) = runs
    steps = (75, 150, 300)
    for m in (16, 64, 256, 1024):
        costs = [
            run[f"swapped {m}, {n}"] - run[f"softmax, {n}"] for n in steps
        ]
        place = steps.index(setting["steps"])
        assert costs[place] > (costs[place - 1] if place else 0.0)


def test_a_shift_of_the_keys_costs_the_estimate_and_not_softmax(setting, runs):
    assert len(runs) == 5
    after = setting["steps"]
    for run in runs:
        names = ("swapped 64", "longer 2", "longer 4", "longer 8")
        shares = [run[f"{name}, {after}"] for name in names]
        assert shares == sorted(set(shares), reverse=True)
        assert abs(run[f"moved, {after}"]) < 0.002


def test_the_worst_with_softmax_is_better_than_the_best_estimate(
    setting, runs
):
    right = f"right, {setting['steps']}"
    worst = min(run[right] for run in runs if run["m"] == 0)
    best = max(run[right] for run in runs if run["m"])
    assert worst > best and len(runs) == 4 * 5


def test_other_draws_recall_less_than_the_one_of_training(setting, runs):
    after = setting["steps"]
    estimates = [run for run in runs if run["m"]]
    assert len(estimates) == 3 * 5
    for run in estimates:
        assert run[f"other, {after}"] < run[f"right, {after}"]
