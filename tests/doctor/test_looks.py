"""The looks of mechanisms whose numbers nobody knows."""

import torch

from selfattn.doctor.kinds.efficient import experiments as looks
from selfattn.doctor.probes import numbers


def averages(q, k, v, causal=False, padding=None):
    """The plain mean of the values that are seen."""
    n_q, n_k = q.shape[-2], k.shape[-2]
    mask = torch.ones(n_q, n_k)
    if causal:
        mask = mask.tril(n_k - n_q)
    return (mask / mask.sum(dim=-1, keepdim=True)).to(v) @ v


def of_tokens(n=6):
    shapes = ((2, n, 4),) * 3
    return {
        name: numbers(*shape, seed=i)
        for i, (name, shape) in enumerate(zip("qkv", shapes, strict=True))
    }


def test_looks_see_who_moves_whom():
    x = of_tokens()
    assert looks.sums(averages, x).allclose(torch.ones(2, 6))
    assert looks.sums(lambda q, k, v: 100 * v, x).max() == 10
    assert looks.who_is_seen(averages, x).all()
    assert looks.itself(averages, {**x, "causal": True}).all()
    first = looks.who_is_seen(lambda q, k, v: v[..., :1, :] + 0 * v, x)
    assert first.tolist() == [True] + [False] * 5
    assert (
        looks.itself(lambda q, k, v: v.roll(1, -2), x).tolist() == [False] * 6
    )


def test_looks_see_the_future_other_texts_and_the_plain_mean():
    x = of_tokens()
    for name in "qk":
        assert not looks.later(averages, x, name)
    assert looks.later(averages, x, "v")
    assert not looks.later(averages, {**x, "causal": True}, "v")
    assert not looks.across(averages, x)
    assert looks.across(lambda q, k, v: v + v.mean(), x)
    assert not looks.told_apart(averages, x)
    assert looks.told_apart(lambda q, k, v: q + v, x)
    assert looks.learned(lambda q, k, v: q + v, x).tolist() == [
        True,
        False,
        True,
    ]
    assert not looks.learned(lambda q, k, v: v.detach(), x).any()


def test_looks_see_what_padding_does():
    x = {name: t[:, None] for name, t in of_tokens().items()}
    x["padding"] = torch.arange(6).expand(2, 6) > 1

    def ignores(q, k, v, padding):
        return averages(q, k, v) + k.mean(dim=-2, keepdim=True)

    def keeps(q, k, v, padding):
        real = padding[:, None, :, None]
        return (
            0 * v + (v * real).sum(-2, keepdim=True) / real.sum(-2)[..., None]
        )

    for name in "kv":
        assert looks.what_moves(ignores, x, name, padded=True)
        assert not looks.what_moves(keeps, x, name, padded=True)
    assert looks.what_moves(keeps, x, "v", padded=False)
    assert looks.sums_of_real(keeps, x).allclose(torch.ones(8, 1))
    assert looks.form(lambda q, k, v, padding: v / 0, x).isnan().all()
