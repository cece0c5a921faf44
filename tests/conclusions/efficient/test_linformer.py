"""Where the conclusions of the page on Linformer hold."""

from statistics import median

import torch
from torch import nn
from torch.testing import assert_close

from selfattn import LinformerAttention, attention, attention_weights
from selfattn.efficient.linformer import MeanPooling, linformer_weights


def drawn(seed, *shape):
    """Normal numbers in float64."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def mixing(weight):
    """The projection that a matrix is."""
    return lambda x: weight @ x


def away(found, exact):
    """The size of the difference over the size of attention's output."""
    return ((found - exact).norm() / exact.norm()).item()


def test_one_token_in_each_mixture_is_attention():
    for n in (1, 5, 64):
        q, k, v = drawn(n, 3, n, 8)
        E = torch.eye(n, dtype=torch.float64)[torch.randperm(n)]
        found = LinformerAttention(mixing(E))(q, k, v)
        assert_close(found, attention(q, k, v))


def test_the_table_has_at_most_the_rank_of_the_mixtures():
    for n, m, d in ((12, 1, 3), (40, 3, 16), (64, 20, 64)):
        q, k, v = drawn(n, 3, n, d)
        E = drawn(m, m, n)
        table = linformer_weights(q, k, mixing(E))
        assert torch.linalg.matrix_rank(table) <= m
        assert_close(LinformerAttention(mixing(E))(q, k, v), table @ v)
        assert torch.linalg.matrix_rank(attention_weights(q, k)) > m


def test_some_table_of_low_rank_gives_the_same_outputs():
    for n, d in ((20, 1), (64, 8), (200, 16)):
        v = drawn(n, n, d)
        sharp = attention_weights(9 * drawn(1, n, d), drawn(2, n, d))
        for table in (torch.eye(n).double().flip(0), sharp, drawn(3, n, n)):
            low = table @ v @ torch.linalg.pinv(v)
            assert torch.linalg.matrix_rank(low, rtol=1e-9) <= d
            assert_close(low @ v, table @ v)


def distances(setting, made):
    """Of five draws of tokens, by a mixing made for each."""
    n, d = setting["n"], setting["d"]
    found = []
    for seed in range(5):
        q, k, v = drawn(seed, 3, n, d)
        q = setting["length"] * q
        exact = attention(q, k, v)
        found.append(away(made(seed)(q, k, v), exact))
    return found


def test_more_means_are_nearer(setting, runs):
    n = setting["n"]
    found = [
        median(distances(setting, lambda _, m=m: means(m)))
        for m in (n // 16, n // 4, n // 2, n)
    ]
    assert found == sorted(found, reverse=True)
    assert found[-1] < 1e-12


def means(m):
    """Attention to means of neighbours."""
    return LinformerAttention(MeanPooling(m))


def test_as_many_random_mixtures_as_tokens_are_not_attention(setting, runs):
    n = setting["n"]

    def random(seed):
        E, F = drawn(100 + seed, 2, n, n) / n**0.5
        return LinformerAttention(mixing(E), mixing(F))

    assert min(distances(setting, random)) > 0.5
    same = LinformerAttention(nn.Identity(), nn.Identity())
    assert max(distances(setting, lambda _: same)) < 1e-12


def largest_quarter(table):
    """The largest quarter of the singular values, over their sum."""
    sizes = torch.linalg.svdvals(table)
    return (sizes[: len(sizes) // 4].sum() / sizes.sum()).item()


def test_weights_in_random_order_have_two_fifths(setting, runs):
    n, d = setting["n"], setting["d"]
    for seed in range(3):
        q, k = drawn(seed, 2, n, d)
        weights = attention_weights(setting["length"] * q, k)
        order = drawn(100 + seed, n, n).argsort(dim=-1)
        mixed = weights.gather(-1, order)
        assert_close(mixed.sum(dim=-1), weights.sum(dim=-1))
        assert largest_quarter(mixed) > 0.4
        assert abs(largest_quarter(torch.eye(n)[order[0]]) - 0.25) < 1e-6


def numbers(runs, name, **setting):
    """One number of each run in a setting."""
    found = [run[name] for run in runs if setting.items() <= run.items()]
    assert len(found) == 5
    return found


def test_the_task_takes_the_rank_down_or_up(setting, runs):
    name = f"share 1, {setting['steps']}"
    for task in ("reversed", "sorted"):
        before = numbers(runs, "share 1, 0", task=task)
        after = numbers(runs, name, task=task)
        down = [a < b for a, b in zip(after, before, strict=True)]
        assert all(down) if task == "reversed" else not any(down)


def test_mixtures_lose_more_than_their_rank_does(setting, runs):
    m, steps = setting["mixtures"], setting["steps"]
    for task in ("reversed", "sorted"):
        nearest, means, random = (
            median(numbers(runs, f"{name} {m}, {steps}", task=task))
            for name in ("nearest", "means", "random")
        )
        assert nearest > max(means, random)


def test_trained_with_mixtures_it_is_behind(setting, runs):
    name = f"right, {setting['steps']}"
    for task in ("reversed", "sorted"):
        whole, four, eight = (
            median(numbers(runs, name, task=task, k=k)) for k in (0, 4, 8)
        )
        assert whole > max(four, eight)


def test_half_as_many_mixtures_find_fewer_values(setting, runs):
    name, pairs = f"right, {setting['steps']}", setting["pairs"]
    as_many, half, quarter = (
        median(numbers(runs, name, k=pairs // part)) for part in (1, 2, 4)
    )
    assert as_many > half > quarter
