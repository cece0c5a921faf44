"""Where the conclusions of the chapter on scaling hold."""

import itertools
import math
from statistics import mean

import torch
from torch.testing import assert_close

ARMS = ("root", "none")
LEARNED = 0.95
TIE = 0.01  # of the digits: ten of a thousand


def draw(*shape):
    """Normal random numbers in double precision."""
    return torch.randn(*shape, dtype=torch.float64)


def components(kind, seed, *shape):
    """Random numbers of mean 0 and variance 1, of three kinds."""
    rng = torch.Generator().manual_seed(seed)
    if kind == "normal":
        return torch.randn(*shape, generator=rng)
    flat = 2 * torch.rand(*shape, generator=rng) - 1
    return flat * 3**0.5 if kind == "uniform" else flat.sign()


def test_the_variance_of_random_signs_is_their_number():
    for d in (1, 2, 3, 4):
        signs = list(itertools.product((-1, 1), repeat=d))
        pairs = itertools.product(signs, signs)
        dots = [sum(a * b for a, b in zip(*p, strict=True)) for p in pairs]
        assert sum(dots) == 0
        assert sum(x * x for x in dots) == d * len(dots)


def test_a_step_of_the_matrix_is_larger_by_the_width():
    """That of the matrix with the division in it; the other's is the same."""
    x, d_k = draw(5, 7), 64
    W = torch.stack([draw(7, d_k), draw(7, d_k)])
    inside = torch.tensor([d_k**-0.5, 1.0])[:, None, None]
    moved = []
    for scale, each in ((d_k**-0.5, 1.0), (1.0, inside)):
        leaf = (W * each).detach().requires_grad_()
        q, k = x @ leaf
        ((q @ k.T * scale).softmax(dim=-1) @ x).square().sum().backward()
        (q, k), (dq, dk) = (q.detach(), k.detach()), x @ leaf.grad
        moved.append(torch.stack([dq @ k.T, q @ dk.T]) * scale)
    further = [m.norm() / f.norm() for f, m in zip(*moved, strict=True)]
    assert_close(further, list(torch.tensor([64.0, 1.0]).double()))


def scores_of(kind, seed, n, d_k, rows=300):
    """Scores of random queries and keys, (rows, n), undivided."""
    drawn = components(kind, seed, rows + n, d_k)
    return (drawn[:rows] @ drawn[rows:].T).double()


def slope(p):
    """The median Frobenius norm of the rows' Jacobians."""
    total = p.square().sum(dim=-1)
    squares = total - 2 * p.pow(3).sum(dim=-1) + total.square()
    return squares.clamp(min=0).sqrt().median().item()


def test_fewer_keys_lose_more_of_the_jacobian(setting, runs):
    d_k = setting["d_k"]
    left = []
    for n in (8, 64, 512):
        scores = scores_of(setting["components"], setting["seed"], n, d_k)
        scaled = scores / d_k**0.5
        left.append(slope(scores.softmax(-1)) / slope(scaled.softmax(-1)))
    assert left[0] < left[1] < left[2]


def query_gradients(kind, seed, n, d_k, scale, rows=300):
    """Median and mean size of the gradients that reach random queries."""
    drawn = components(kind, seed, rows + n, d_k)
    rng = torch.Generator().manual_seed(seed)
    v, up = torch.randn(n, 16, generator=rng), torch.randn(rows, 16)
    q = drawn[:rows].clone().requires_grad_()
    weights = (q @ drawn[rows:].T * scale).softmax(dim=-1)
    (weights @ v * up).sum().backward()
    sizes = q.grad.norm(dim=-1)
    return torch.stack([sizes.median(), sizes.mean()])


def test_the_gradient_of_a_query_is_the_same_at_every_width(setting, runs):
    where = setting["components"], setting["seed"], setting["keys"]
    drift = {}
    for power in (-0.5, 0.0, -1.0):
        at = [query_gradients(*where, d, d**power) for d in (64, 256, 1024)]
        ratios = torch.stack(at[1:]) / at[0]
        drift[power] = ratios.log().abs().max().item()
    assert drift[-0.5] < 0.3  # within a third, in 300 rows
    assert min(drift[0.0], drift[-1.0]) > 0.6


def right(runs, **setting):
    """The shares of right digits in runs with these values."""
    return [r["right"] for r in runs if setting.items() <= r.items()]


def test_the_same_rates_do_at_every_width(setting, runs):
    assert {run["d_k"] for run in runs} == {8, 64, 512}
    learned = {run["right"] >= LEARNED for run in runs}
    assert learned == {setting["rate"] > 0.03}


def test_undivided_layers_get_no_more_right(setting, runs):
    root, none = (mean(right(runs, arm=arm)) for arm in ARMS)
    assert none <= root + TIE


def test_divided_by_the_width_wide_layers_need_larger_rates(setting, runs):
    """The smallest rate at which a share of the digits is right."""
    least = []
    for d_k in (8, 64, 512):
        enough = [
            run["rate"]
            for run in runs
            if run["d_k"] == d_k and run["right"] >= setting["share"]
        ]
        least.append(min(enough, default=10.0))
    assert least[0] < least[1] < least[2]


def arrival(runs, arm):
    """After how many steps an arm's one run had .95 of the digits right."""
    (run,) = (run for run in runs if run["arm"] == arm)
    asked = (100, 200, 300, 400, 600, 800, 1000, 1500)
    at = {n: run[f"right at {n}"] for n in asked} | {2000: run["right"]}
    return next((n for n in at if at[n] >= LEARNED), math.inf)


def test_an_undivided_wide_head_arrives_later(setting, runs):
    root, none = (arrival(runs, arm) for arm in ARMS)
    assert root < none
    if setting["rate"] == 0.3:  # the largest that was asked on the way
        assert (root, none) == (100, math.inf)
    else:
        assert root > 100


def test_from_a_mild_start_the_undivided_layer_arrives_no_later(setting, runs):
    root, none = (arrival(runs, arm) for arm in ARMS)
    assert none < root
    assert setting["rate"] > 0.03 or 2 <= root / none <= 4


def largest_weights(seed, n, deviation, rows=300):
    """The largest weight of each row, of normal scores with a deviation."""
    rng = torch.Generator().manual_seed(seed)
    scores = torch.randn(rows, n, generator=rng, dtype=torch.float64)
    return (deviation * scores).softmax(dim=-1).amax(dim=-1)


def test_widely_spread_scores_leave_one_key_however_many(setting, runs):
    n, seed = setting["keys"], setting["seed"]
    far = setting["beyond"] * math.sqrt(2 * math.log(n))
    assert largest_weights(seed, n, far).median() > 0.9
    # Around 1 it is the other way round: the more keys, the less for one.
    for deviation in (0.5, 1.0, 1.5):
        fewer = largest_weights(seed, n // 4, deviation).median()
        assert largest_weights(seed, n, deviation).median() < 0.75 * fewer
