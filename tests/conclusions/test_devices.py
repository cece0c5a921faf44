"""Where the conclusions of the chapter on devices hold."""

import itertools
from functools import cache, partial

import pytest
import torch
import torch._dynamo  # once, and not on each rank
from torch.distributed.device_mesh import init_device_mesh
from torch.testing import assert_close
from torch.utils.flop_counter import FlopCounterMode

from selfattn.devices.heads import tensor_parallel
from selfattn.devices.ring import ring_attention
from selfattn.devices.ulysses import ulysses_attention
from selfattn.devices.world import Sent, on_ranks
from selfattn.labs.devices import LINKS, shares
from selfattn.measurements import measured
from selfattn.multihead import MultiHeadAttention

FITTED = 2048  # tokens at most


def draw(*shape):
    """Normal random numbers in double precision."""
    return torch.randn(*shape, dtype=torch.float64)


def collected(scores, values):
    """What a rank keeps of its own keys for one query."""
    powers = (scores - scores.max()).exp()
    return scores.max(), powers.sum(), powers @ values


def test_any_shares_of_the_keys_in_any_order_give_softmax_attention():
    values = draw(7, 3)
    for scores in (draw(7), 100 * draw(7), draw(7) - 60_000):
        judge = scores.softmax(0) @ values
        for sizes in ([7], [1, 6], [3, 2, 2], [1] * 7):
            places = torch.randperm(7).split(sizes)
            for ranks in itertools.islice(itertools.permutations(places), 6):
                m = torch.stack([scores[r].max() for r in ranks])
                powers = [
                    (scores[r] - x).exp()
                    for r, x in zip(ranks, m, strict=True)
                ]
                total = torch.stack([x.sum() for x in powers])
                summed = torch.stack(
                    [x @ values[r] for x, r in zip(powers, ranks, strict=True)]
                )
                shrink = (m - m.max()).exp()
                assert_close(shrink @ summed / (shrink @ total), judge)


def sent(rank, n_ranks):
    """The bytes that leave a rank each way, for 24 tokens and 32 features."""
    q, k, v = (x.chunk(n_ranks, dim=-2)[rank] for x in torch.ones(3, 4, 24, 8))
    mesh = init_device_mesh("cpu", (n_ranks,))
    layer = tensor_parallel(MultiHeadAttention(32, 4), mesh)
    found = {}
    for name, key, call in (
        ("ring", "send", partial(ring_attention, q, k, v)),
        ("swap", "alltoall_base_", partial(ulysses_attention, q, k, v)),
        ("heads", "all_reduce", partial(layer, torch.ones(1, 24, 32))),
    ):
        with Sent() as bytes_sent:
            call()
        found[name] = bytes_sent.bytes[key]
    return found


def test_ring_and_heads_send_alike_and_the_swap_two_pths_of_it():
    for p in (2, 4):
        for found in on_ranks(sent, p):
            assert found["ring"] == found["heads"]
            assert p * found["swap"] == 2 * found["ring"]
    for p, n in itertools.product((2, 8, 32), (1024, 2**20)):
        way = shares(ranks=p, n=n, n_heads=32, d_head=64, link="NVLink")
        assert way["ring"].sent == way["heads"].sent
        assert p * way["swap"].sent == 2 * way["ring"].sent


def work(rank, n_ranks):
    """The operations of a rank under a causal mask."""
    q, k, v = (x.chunk(n_ranks, dim=-2)[rank] for x in torch.ones(3, 24, 4))
    with FlopCounterMode(display=False) as done:
        ring_attention(q, k, v, causal=True)
    return done.get_total_flops()


def test_the_last_rank_works_most_under_a_causal_mask():
    for p in (2, 3, 4):
        done = on_ranks(work, p)
        assert done == [(rank + 1) * done[0] for rank in range(p)]
        assert done[-1] / (sum(done) / p) == pytest.approx(2 * p / (p + 1))


def test_a_hop_is_hidden_from_as_many_tokens_as_operations_a_byte():
    for d, link, F in itertools.product((64, 128), LINKS, (1e13, 6e14)):
        border = F / (LINKS[link] * 1e9)
        for c in (2**e for e in range(21)):  # tokens on each of two ranks
            way = shares(ranks=1, n=c, n_heads=8, d_head=d, link=link)
            assert way["ring"].sent == 0
            two = 2 * 2 * c * 8 * d / (LINKS[link] * 1e9)
            assert (4 * c**2 * 8 * d / F >= two) == (c >= border)


def counts(run):
    """Pairs, tokens to join to, and blocks of a rank."""
    return [run["n"] ** 2 / run["ranks"], run["n"], run["ranks"]]


def tokens_sent(run):
    """Tokens that leave a rank."""
    return (run["ranks"] - 1) * run["n"] / run["ranks"]


@cache
def fitted(terms):
    """So many of the counts fitted to short texts; and a token's sending."""
    ledger = measured("devices")["runs"]
    hops = [r for r in ledger if r["part"] == "hop" and r["n"] >= 2 * FITTED]
    rate = torch.tensor([r["ms"] / tokens_sent(r) for r in hops]).median()
    rate = float(rate) if terms > 1 else 0.0
    short = [r for r in ledger if r["part"] == "time" and r["n"] <= FITTED]
    ms = torch.tensor([r["ms"] for r in short]).double()
    rows = torch.tensor([counts(r)[:terms] for r in short]) / ms[:, None]
    away = torch.tensor([rate * tokens_sent(r) for r in short]).double()
    size = rows.norm(dim=0)
    rest = ((ms - away) / ms)[:, None]
    solution = torch.linalg.lstsq(rows.double() / size, rest).solution
    return (solution[:, 0] / size).tolist(), rate


def off(run, terms):
    """By which share the model is off."""
    fit, rate = fitted(terms)
    pairs = zip(fit, counts(run)[:terms], strict=True)
    ms = sum(a * b for a, b in pairs) + rate * tokens_sent(run)
    return ms / run["ms"] - 1


def test_the_model_forecasts_longer_texts(setting, runs):
    longer = [r for r in runs if r["n"] > FITTED]
    assert {r["n"] // FITTED for r in longer} == {2, 4}
    assert all(abs(off(run, 3)) < 0.3 for run in longer)
    everywhere = (r for r in measured("devices")["runs"] if "ms" in r)
    far = [off(r, 1) for r in everywhere if r["n"] > FITTED]
    assert max(far) > 0.6
