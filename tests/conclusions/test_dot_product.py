"""Where the conclusions of the chapter on queries, keys and values hold."""

import torch
from torch.autograd.functional import jacobian
from torch.testing import assert_close

from selfattn import attention

NEARLY_ALL = 0.99


def draw(*shape):
    """Normal random numbers in double precision."""
    return torch.randn(*shape, dtype=torch.float64)


def test_outputs_stay_among_the_values():
    q, k, v = draw(5, 7), draw(11, 7), draw(11, 3)
    for direction in draw(100, 3):
        reached, there = attention(q, k, v) @ direction, v @ direction
        assert reached.max() <= there.max() and reached.min() >= there.min()


def test_an_output_depends_on_its_own_query_alone():
    q, k, v = draw(5, 7), draw(11, 7), draw(11, 3)
    slopes = jacobian(lambda q: attention(q, k, v), q)  # (5, 3, 5, 7)
    felt = slopes.abs().sum(dim=(1, 3)) > 0
    assert torch.equal(felt, torch.eye(5, dtype=torch.bool))
    for x, f in ((k, lambda k: attention(q, k, v)), (v, None)):
        f = f or (lambda v: attention(q, k, v))
        assert (jacobian(f, x).abs().sum(dim=(1, 3)) > 0).all()


def test_one_vector_more_in_every_key_changes_nothing():
    q, k, v, c = draw(5, 7), draw(11, 7), draw(11, 3), draw(7)
    assert_close(attention(q, k + c, v), attention(q, k, v))
    assert not torch.allclose(attention(q + c, k, v), attention(q, k, v))


def test_without_the_softmax_it_is_cubic():
    x, W_q, W_k, W_v = draw(5, 7), *draw(3, 7, 3)

    def bare(x):
        return (x @ W_q) @ (x @ W_k).T @ (x @ W_v)

    for factor in (-1.0, 0.5, 3.0):
        assert_close(bare(factor * x), factor**3 * bare(x))


def test_keys_of_one_norm_are_smoothed_as_by_a_gaussian():
    q, k, v = draw(5, 7), draw(11, 7), draw(11, 3)
    k = 1.7 * k / k.norm(dim=-1, keepdim=True)
    squares = (q[:, None] - k).square().sum(dim=-1)
    kernel = (-squares / (2 * 7**0.5)).exp()
    smoothed = kernel @ v / kernel.sum(dim=-1, keepdim=True)
    assert_close(attention(q, k, v), smoothed)


def successes(cycle, hidden):
    """The most names of a cycle that find the next, in random shared keys."""
    q = draw(20_000, cycle, 3)
    scores = q @ q.mT
    if hidden:
        own = torch.eye(cycle, dtype=torch.bool)
        scores = scores.masked_fill(own, -torch.inf)
    following = torch.arange(1, cycle + 1) % cycle
    found = scores.argmax(dim=-1) == following
    return found.sum(dim=-1).max().item()


def test_in_every_cycle_one_query_fails_that_is_its_key():
    assert [successes(c, hidden=False) for c in (2, 3, 4)] == [1, 2, 3]


def test_hiding_its_own_key_helps_in_pairs_alone():
    assert [successes(c, hidden=True) for c in (2, 3, 4)] == [2, 2, 3]


def found(run, after):
    """The share of queries that looked at the right token by then."""
    return run["found" if after == run["steps"] else f"found at {after}"]


def test_separate_matrices_find_the_next_name(setting, runs):
    assert all(found(run, setting["after"]) >= NEARLY_ALL for run in runs)


def test_without_its_own_key_a_shared_matrix_solves_pairs(setting, runs):
    by_arm = {run["arm"]: found(run, setting["after"]) for run in runs}
    assert by_arm["shared, self hidden"] >= NEARLY_ALL
    assert by_arm["shared"] <= 0.51


def test_in_cycles_of_three_training_stays_at_a_third(setting, runs):
    (run,) = runs
    assert abs(found(run, setting["after"]) - 1 / 3) < 0.02
    # A tie: three weights of a third, so that the largest is hardly more.
    assert run["largest"] < 0.4 and run["in cycle"] > 0.95
