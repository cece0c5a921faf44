"""Where the conclusions of the chapter on layers hold."""

from math import comb
from statistics import median

import pytest
import torch
from torch.autograd.functional import jacobian
from torch.testing import assert_close

from selfattn import attention, attention_weights
from selfattn.layers import AddNorm

DEAD = -14  # as a power of ten: nothing but rounding
LIMIT = 0.05 / 9  # nine comparisons are made in the chapter
N, D = 5, 7


def draw(*shape):
    """Normal random numbers in double precision."""
    return torch.randn(*shape, dtype=torch.float64)


def test_weights_of_other_tokens_leave_far_more(setting, runs):
    n, d = setting["tokens"], setting["features"]
    torch.manual_seed(setting["seed"])
    x = y = draw(n, d)
    for _ in range(6):
        W_q, W_k, W_v, W_o = draw(4, d, d) / d**0.5
        others = draw(n, d)
        x = attention(x @ W_q, x @ W_k, x @ W_v) @ W_o
        weights = attention_weights(others @ W_q, others @ W_k)
        y = weights @ y @ W_v @ W_o
    own, by_others = ((z - z.mean(0)).norm() / z.norm() for z in (x, y))
    assert own < 1e-13
    assert by_others > 1e-6


def test_a_silent_block_is_the_identity_in_pre_norm_alone():
    one, x = torch.eye(D).double(), draw(D)
    pre, post = (AddNorm(D, pre=pre).double() for pre in (True, False))
    assert_close(jacobian(lambda x: pre(x, torch.zeros_like), x), one)
    on_path = jacobian(lambda x: post(x, torch.zeros_like), x)
    assert torch.linalg.matrix_rank(on_path, atol=1e-4) == D - 2


def test_without_the_path_tokens_become_identical(setting, runs):
    block = setting["block"]
    assert all(run[f"distinct {block}"] <= DEAD for run in runs)


def test_a_network_brings_tokens_together(setting, runs):
    name = f"distinct {setting['block']}"
    by_seed = [
        {run["seed"]: run[name] for run in runs if run["feed_forward"] is ff}
        for ff in (True, False)
    ]
    less = sum(by_seed[0][seed] < by_seed[1][seed] for seed in by_seed[1])
    assert 7 <= less <= len(by_seed[1]) == 10


def test_the_query_matrix_loses_its_gradient_and_the_input_does_not(
    setting, runs
):
    block = setting["block"]
    assert all(run[f"query {block}"] <= DEAD for run in runs)
    assert all(run[f"path {block}"] > -2 for run in runs)


def test_gradients_are_larger_without_a_norm(setting, runs):
    by_norm = {run["norm"]: run[f"path {setting['block']}"] for run in runs}
    assert by_norm["none"] > max(by_norm["pre"], by_norm["post"])


def last_gradient(seed, blocks, features, calm):
    """The gradient of the last block's query matrix, as in the chapter."""
    torch.manual_seed(seed)
    x = draw(10, features)
    for block in range(blocks):
        last = block == blocks - 1
        W_q, W_k, W_v, W_o = draw(4, features, features) / features**0.5
        W_in = draw(features, 4 * features) / features**0.5
        W_out = draw(4 * features, features) / (2 * features) ** 0.5
        W_q.requires_grad_(last)
        size = x.norm(dim=-1, keepdim=True)
        asks = 4 * x / size if calm and last else x
        scores = (asks @ W_q) @ (asks @ W_k).T / features**0.5
        x = x + scores.softmax(dim=-1) @ x @ W_v @ W_o
        x = x + (x @ W_in).relu() @ W_out
    (x * torch.randn_like(x)).sum().backward()
    return W_q.grad.norm().item()


def test_a_calmed_block_has_its_gradient_back(setting, runs):
    as_it_is, calmed = (
        [last_gradient(seed, **setting, calm=calm) for seed in range(5)]
        for calm in (False, True)
    )
    assert min(calmed) > 1
    assert median(as_it_is) < 1e-14


def last_network(pre, depth, seed, features, tokens):
    """The gradient of the last network's second matrix, in fresh blocks."""
    torch.manual_seed(seed)
    x, up = torch.randn(2, tokens, features)
    norm = torch.nn.LayerNorm(features)
    for _ in range(depth):
        W_q, W_k, W_v, W_o = torch.randn(4, features, features) / features**0.5
        W_in = torch.randn(features, 4 * features) / features**0.5
        W_out = torch.randn(4 * features, features) / (2 * features) ** 0.5
        W_out.requires_grad_()

        def attend(x, q=W_q, k=W_k, v=W_v, o=W_o):
            return attention(x @ q, x @ k, x @ v) @ o

        def work(x, into=W_in, out=W_out):
            return (x @ into).relu() @ out

        for f in (attend, work):
            x = x + f(norm(x)) if pre else norm(x + f(x))
    ((norm(x) if pre else x) * up).sum().backward()
    return W_out.grad.norm().item()


@pytest.mark.usefixtures("unchecked")
def test_the_last_gradient_falls_with_depth_in_pre_norm_alone(setting, runs):
    left = {}
    for pre in (True, False):
        shallow, deep = (
            median(last_network(pre, n, seed, **setting) for seed in range(5))
            for n in (2, 16)
        )
        left[pre] = deep / shallow
    assert 0.2 < left[True] < 0.55  # by the root it would be .35
    assert 0.7 < left[False] < 1.4


def wins(runs, arm, rate, learned_at):
    """How many seeds of an arm learned, at one rate."""
    return sum(
        run["right"] >= learned_at
        for run in runs
        if (run["arm"], run["rate"]) == (arm, rate)
    )


def test_pre_norm_learns_no_less_often(setting, runs):
    at = setting["rate"], setting["learned_at"]
    assert wins(runs, "pre", *at) >= wins(runs, "post", *at)


def test_pre_norm_learns_more_often(setting, runs):
    kept = [run for run in runs if run["seed"] != setting["without_seed"]]
    seeds, rates = ({run[name] for run in kept} for name in ("seed", "rate"))
    assert len(seeds) == 4 + (setting["without_seed"] == "none")
    pre, post = (
        [wins(kept, arm, rate, setting["learned_at"]) for rate in rates]
        for arm in ("pre", "post")
    )
    assert sum(pre) > sum(post)
    assert stratified(pre, post, n=len(seeds)) < LIMIT
    if len(seeds) == 5:
        ways = one_otherwise(pre, post)
        assert all(stratified(*arms) < LIMIT for arms in ways)


def one_otherwise(one, other, n=5):
    """Both arms' wins, had a single run come out otherwise: every way."""
    for arm, wins in enumerate((one, other)):
        for i, won in enumerate(wins):
            for changed in {max(won - 1, 0), min(won + 1, n)}:
                arms = [list(one), list(other)]
                arms[arm][i] = changed
                yield arms


def stratified(one, other, n=5):
    """The exact p of two arms of ``n`` seeds, stratified over the rates.

    At each rate, w wins among 2n runs fall to the first arm as in a
    hypergeometric distribution; the sums are the product of the polynomials.
    """
    ways = [1]
    for a, b in zip(one, other, strict=True):
        w = a + b
        deals = [
            comb(n, i) * comb(n, w - i) if w >= i else 0 for i in range(n + 1)
        ]
        ways = [
            sum(ways[t - i] * deals[i] for i in range(n + 1) if 0 <= t - i < m)
            for m in [len(ways)]
            for t in range(m + n)
        ]
    rare = sum(x for x in ways if x <= ways[sum(one)])
    return rare / sum(ways)
