"""Where the conclusions of the page on linear attention hold."""

import torch
from torch.testing import assert_close

from selfattn import attention
from selfattn.efficient.linear import (
    elu_plus_one,
    linear_attention,
    linear_attention_step,
    linear_weights,
)


def draw(*shape):
    """Normal random numbers in double precision."""
    return torch.randn(*shape, dtype=torch.float64)


def test_table_prefix_sums_chunks_and_recurrence_are_one():
    for n in (1, 2, 65):
        q, k, v = draw(n, 5), draw(n, 5), draw(n, 3)
        table = linear_weights(q, k, causal=True) @ v
        f_q, f_k = elu_plus_one(q), elu_plus_one(k)
        S = (f_k[:, :, None] * v[:, None, :]).cumsum(dim=0)
        Z = (f_q * f_k.cumsum(dim=0)).sum(dim=-1, keepdim=True)
        assert_close((f_q[:, None, :] @ S).squeeze(1) / Z, table)
        assert_close(linear_attention(q, k, v, causal=True), table)
        kept, rows = None, []
        for token in zip(q, k, v, strict=True):
            output, kept = linear_attention_step(*token, kept)
            rows.append(output)
        assert_close(torch.stack(rows), table)


def test_it_is_more_than_half_the_output_away(setting, runs):
    generator = torch.Generator().manual_seed(setting["seed"])
    q, k, v = torch.randn(
        3, setting["n"], setting["d"], generator=generator
    ).double()
    exact = attention(q, k, v)
    assert (linear_attention(q, k, v) - exact).norm() > exact.norm() / 2


def series_weights(q, k, order):
    """By the exponential's series up to an order."""
    scores = q @ k.T / q.shape[-1] ** 0.5
    power = weights = torch.ones_like(scores)
    for i in range(1, order + 1):
        power = power * scores / i
        weights = weights + power
    return weights / weights.sum(dim=-1, keepdim=True)


def tensor_powers(order):
    """All products of up to so many features, as a feature map."""

    def features(x):
        x = x / x.shape[-1] ** 0.25
        parts = [torch.ones_like(x[..., :1])]
        for i in range(1, order + 1):
            more = parts[-1][..., :, None] * x[..., None, :] / i**0.5
            parts.append(more.flatten(start_dim=-2))
        return torch.cat(parts, dim=-1)

    return features


def test_the_series_features_are_the_series_and_it_tends_to_softmax():
    q, k, v = draw(7, 2), draw(11, 2), draw(11, 3)
    for order in (2, 4, 6):
        ours = linear_attention(q, k, v, feature_map=tensor_powers(order))
        assert_close(ours, series_weights(q, k, order) @ v)
    q, k, exact = 3 * q, 3 * k, attention(3 * q, 3 * k, v)
    off = [
        (series_weights(q, k, order) @ v - exact).abs().max()
        for order in (8, 64, 128)
    ]
    assert off[0] > 1e-6 > 1e-9 > off[2]


def test_the_mean_square_error_is_pairs_less_one_over_features():
    for pairs, d in ((2, 3), (9, 5), (40, 16)):
        k = torch.nn.functional.normalize(draw(4000, pairs, d), dim=-1)
        v = draw(4000, pairs, 7)
        off = k @ (k.mT @ v) - v
        share = off.square().mean() / v.square().mean()
        assert abs(share / ((pairs - 1) / d) - 1) < 0.1


def test_what_is_read_has_no_more_rank_than_features():
    for d in (1, 3, 8):
        k, v = draw(20, d), draw(20, 20)
        read = draw(50, d) @ (k.T @ v)
        assert torch.linalg.matrix_rank(read) == d
        orthonormal = torch.linalg.qr(draw(d, d)).Q
        values = draw(d, 4)
        assert_close(orthonormal @ (orthonormal.T @ values), values)


def test_the_gate_is_a_mask_of_products():
    n = 9
    for gate in (torch.rand(n).double(), torch.ones(n).double()):
        q, k, v = draw(n, 4), draw(n, 4), draw(n, 3)
        S, rows = torch.zeros(4, 3).double(), []
        for i in range(n):
            S = gate[i] * S + k[i][:, None] * v[i]
            rows.append(q[i] @ S)
        mask = torch.zeros(n, n).double()
        for i in range(n):
            for j in range(i + 1):
                mask[i, j] = gate[j + 1 : i + 1].prod()
        assert_close((mask * (q @ k.T)) @ v, torch.stack(rows))


def test_the_delta_rule_is_causal_attention_to_corrected_values():
    n = 9
    q, k, v = draw(n, 4), draw(n, 4) / 2, draw(n, 3)
    rate = torch.rand(n).double()
    S, rows = torch.zeros(4, 3).double(), []
    for i in range(n):
        S = S + rate[i] * k[i][:, None] * (v[i] - k[i] @ S)
        rows.append(q[i] @ S)
    seen = (rate[:, None] * (k @ k.T)).tril(-1)
    written = torch.linalg.solve(
        torch.eye(n).double() + seen, rate[:, None] * v
    )
    assert_close((q @ k.T).tril() @ written, torch.stack(rows))


def shares(runs, arm, after, **where):
    """The shares of right values of an arm, by then, in order."""
    return sorted(
        run[f"right, {after}"]
        for run in runs
        if {"arm": arm, **where}.items() <= run.items()
    )


def middle(numbers):
    """The median of an odd number of them."""
    return numbers[len(numbers) // 2]


def test_the_worst_with_softmax_is_better_than_the_best_without(setting, runs):
    worst, *_ = shares(runs, "softmax", setting["steps"])
    *_, best = shares(runs, "linear", setting["steps"])
    assert worst > best
    assert len(runs) >= 2 * 5


def test_more_features_recall_more(setting, runs):
    found = [
        middle(shares(runs, "linear", setting["steps"], d=d))
        for d in (4, 8, 16)
    ]
    assert found == sorted(set(found))


def test_a_swap_costs_more_the_longer_a_model_was_trained(setting, runs):
    (run,) = runs
    steps = (75, 150, 300)
    costs = [run[f"swapped, {n}"] - run[f"softmax, {n}"] for n in steps]
    place = steps.index(setting["steps"])
    before = costs[place - 1] if place else 0.1
    assert costs[place] > before
