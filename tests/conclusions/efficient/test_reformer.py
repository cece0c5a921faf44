"""Where the conclusions of the page on Reformer hold."""

import math
from functools import partial
from statistics import median

import torch
import torch.nn.functional as F
from torch.testing import assert_close

from selfattn import attention, lsh_attention
from selfattn.efficient.reformer import lsh_buckets, lsh_mask


def test_with_one_bucket_it_is_attention():
    for n in (1, 5, 300):
        q, k, v = torch.randn(3, n, 8, dtype=torch.float64)
        for causal in (False, True):
            found = lsh_attention(q, k, v, n_buckets=1, causal=causal)
            assert_close(found, attention(q, k, v, causal=causal))


def test_two_buckets_part_by_the_angle():
    """Exactly: the directions that part them fill twice the angle."""
    turns = torch.arange(0.5, 36_000) * math.tau / 36_000
    R = torch.stack([turns.cos(), turns.sin()])
    for angle in (0.1, math.pi / 3, 2.5):
        pair = torch.tensor([[1.0, 0.0], [math.cos(angle), math.sin(angle)]])
        a, b = (pair @ R > 0).unbind()
        share = (a == b).double().mean().item()
        assert abs(share - (1 - angle / math.pi)) < 1e-3
        x = F.pad(pair, (0, 5))
        a, b = lsh_buckets(x, n_buckets=2, n_rounds=20_000).unbind(dim=-1)
        met = (a == b).double().mean().item()
        assert abs(met - (1 - angle / math.pi)) < 4 * 0.5 / 20_000**0.5


def chunked(q, v, buckets, m):
    """One round as published: causal, in sorted chunks of m."""
    k = F.normalize(q, dim=-1)
    order = buckets.argsort(stable=True)
    place = order.argsort() // m
    behind = place[:, None] - place[None, :]
    near = (behind == 0) | (behind == 1)
    past = torch.ones(len(q), len(q)).tril(-1).bool()
    seen = near & past & (buckets[:, None] == buckets[None, :])
    alone = torch.eye(len(q)).bool() & ~seen.any(dim=-1, keepdim=True)
    return attention(q, k, v, mask=seen | alone)


def whole(q, v, buckets):
    """The same in whole buckets: one chunk holds all."""
    return chunked(q, v, buckets, len(q))


def moves(attend, seed, *, n, d, n_buckets):
    """Whether the second half of a text moves the outputs of the first."""
    generator = torch.Generator().manual_seed(seed)
    x, v, other = torch.randn(3, n, d, generator=generator).double()
    later = torch.cat([x[: n // 2], other[n // 2 :]])
    before, after = (
        attend(y, v, lsh_buckets(y, n_buckets=n_buckets, n_rounds=1)[0])
        for y in (x + x[0], later + x[0])
    )
    return bool(((before - after)[: n // 2].abs() > 1e-9).any())


def test_in_chunks_later_tokens_change_what_is_seen(setting, runs):
    n, d, b = (setting[name] for name in ("n", "d", "buckets"))
    sizes = {"n": n, "d": d, "n_buckets": b}
    short = partial(chunked, m=n // b)
    assert any(moves(short, seed, **sizes) for seed in range(20))
    assert not any(moves(whole, seed, **sizes) for seed in range(3))


def distances(n, d, length, n_buckets, n_rounds):
    """The size of the difference over full attention's, of five draws."""
    found = []
    for seed in range(5):
        generator = torch.Generator().manual_seed(seed)
        q, v = torch.randn(2, n, d, generator=generator).double()
        k = F.normalize(q, dim=-1)
        options = {"seed": seed, "see_itself": False}
        near, full = (
            attention(
                length * k,
                k,
                v,
                mask=lsh_mask(q, k, n_buckets=b, n_rounds=r, **options),
            )
            for b, r in ((n_buckets, n_rounds), (1, 1))
        )
        found.append(((near - full).norm() / full.norm()).item())
    return median(found)


def test_more_rounds_are_nearer_and_more_buckets_farther(setting, runs):
    by_rounds = [
        distances(**setting, n_buckets=8, n_rounds=r) for r in (1, 4, 16)
    ]
    assert by_rounds == sorted(by_rounds, reverse=True)
    by_buckets = [
        distances(**setting, n_buckets=b, n_rounds=4) for b in (2, 8, 32)
    ]
    assert by_buckets == sorted(by_buckets)


def test_no_ring_prefers_the_next():
    """Nor does it when directions are sought that come as near as possible."""
    for n, d in ((3, 2), (4, 8), (6, 24)):
        x = torch.randn(500, n, d, requires_grad=True)
        optimizer = torch.optim.Adam([x], lr=0.05)
        for _ in range(60):
            k = F.normalize(x, dim=-1)
            scores = x @ k.mT
            nxt = scores.roll(-1, dims=-1).diagonal(dim1=-2, dim2=-1)
            before = scores.roll(1, dims=-1).diagonal(dim1=-2, dim2=-1)
            prefers = (nxt - before > 0).all(dim=-1)
            assert not prefers.any()
            optimizer.zero_grad()
            (before - nxt).amax(dim=-1).sum().backward()
            optimizer.step()
    theta = torch.rand(200, 5, dtype=torch.float64) * math.tau
    cosines = (theta - theta.roll(-1, dims=-1)).cos()
    assert ((cosines - cosines.roll(1, dims=-1)).amin(dim=-1) <= 0).all()


def numbers(runs, name, **setting):
    """One number of each run in a setting."""
    found = [run[name] for run in runs if setting.items() <= run.items()]
    assert len(found) == 5
    return found


def test_buckets_put_in_cost_more_the_longer_it_was_trained(setting, runs):
    for arm in ("separate", "shared"):
        cost = [
            median(
                numbers(runs, f"rounds {setting['rounds']}, {steps}", arm=arm)
            )
            - median(numbers(runs, f"loss, {steps}", arm=arm))
            for steps in (75, 150, 300)
        ]
        assert cost == sorted(cost) and cost[0] > 0


def test_trained_in_it_is_ahead_of_put_in(setting, runs):
    name = f"rounds 2, {setting['steps']}"
    separate, shared, hashed = (
        median(numbers(runs, name, arm=arm))
        for arm in ("separate", "shared", "hashed")
    )
    assert hashed < min(separate, shared)


def test_trained_in_it_is_behind_full_attention(setting, runs):
    name = f"loss, {setting['steps']}"
    full, hashed = (
        median(numbers(runs, name, arm=arm)) for arm in ("shared", "hashed")
    )
    assert hashed > full


def test_in_a_ring_one_shared_head_finds_fewer(setting, runs):
    name = f"right, {setting['steps']}"
    separate, shared = (
        numbers(runs, name, arm=arm, heads=1) for arm in ("separate", "shared")
    )
    assert min(separate) > max(shared)


def test_two_shared_heads_find_more_than_one(setting, runs):
    name = f"right, {setting['steps']}"
    one, two = (
        median(numbers(runs, name, arm="shared", heads=h)) for h in (1, 2)
    )
    assert two > one
