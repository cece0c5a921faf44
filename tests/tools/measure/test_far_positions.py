"""The readings of the experiment on positions change what they say."""

import math
from functools import partial

import pytest
import torch
from torch.testing import assert_close

from selfattn import attention
from selfattn.positions import rope
from selfattn.positions.absolute import frequencies
from tools.measure.experiments import positions as far

N, MOST = 40, far.FARTHEST["RoPE"]


@pytest.fixture
def qkv():
    return torch.randn(3, N, far.WIDTH)


def by_hand(q, k, v, pairs, to):
    """Attention of the last query, number by number."""
    speeds = frequencies(far.WIDTH, 10_000.0).tolist()
    scores = []
    for j in range(N):
        score, back = 0.0, N - 1 - j
        for i, speed in enumerate(speeds):
            away = to if i in pairs and back > MOST else back
            a, b = q[-1, 2 * i : 2 * i + 2].tolist()
            c, d = k[j, 2 * i : 2 * i + 2].tolist()
            turn = -away * speed  # as far as from the query to the key
            cos, sin = math.cos(turn), math.sin(turn)
            score += cos * (a * c + b * d) + sin * (b * c - a * d)
        scores.append(score / far.WIDTH**0.5)
    return torch.tensor(scores).softmax(dim=-1) @ v


@pytest.mark.parametrize(("pairs", "to"), far.CLAMPED.values())
def test_a_pair_that_is_clamped_turns_no_further(qkv, pairs, to):
    found = far.near_rope(*qkv, pairs=pairs, to=to)
    assert_close(found[-1], by_hand(*qkv, pairs, to), atol=1e-5, rtol=1e-4)


def test_the_fastest_pair_is_in_step_with_three_back_at_28_and_not_at_30():
    assert far.CLAMPED["pair 0 at 28"] == ([0], 28)
    turns = [(to - far.LAG) / (2 * math.pi) for to in (28, MOST)]
    assert abs(turns[0] - 4) < 0.03 and 0.25 < turns[1] - 4 < 0.35


def test_with_no_pair_clamped_it_is_rope(qkv):
    q, k, v = qkv
    found = far.near_rope(q, k, v, pairs=[])
    assert_close(found, attention(rope(q), rope(k), v, causal=True))


def test_near_keys_are_as_they_were(qkv):
    whole = far.near_rope(*qkv)
    assert_close(whole[: MOST + 1], far.near_rope(*qkv, pairs=[])[: MOST + 1])


def test_of_eight_pairs_two_have_met_every_angle():
    met = (far.N - 1) * frequencies(far.WIDTH, 10_000.0) > 2 * math.pi
    assert met.tolist() == [True] * 2 + [False] * 6
    assert (
        list(far.CLAMPED["pairs 2 to 7"][0])
        == met.logical_not().nonzero(as_tuple=True)[0].tolist()
    )


def test_keys_that_are_hidden_change_nothing():
    torch.manual_seed(0)
    one = far.Decoder("RoPE").eval().requires_grad_(False)
    del one.blocks[1]  # else what others heard of a hidden key is heard
    text = torch.randint(far.VOCABULARY, (1, 70))
    other = text.clone()
    other[:, 70 - 1 - 60] = (text[:, 70 - 1 - 60] + 1) % far.VOCABULARY
    read = partial(one, hidden=far.HIDDEN["59 to 61"])
    assert_close(read(text)[:, -1], read(other)[:, -1])
    assert not torch.allclose(one(text)[:, -1], one(other)[:, -1])
