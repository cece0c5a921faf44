"""What weights tell: whom a mechanism sees, and which step is another."""

import math
from functools import partial

import pytest
import torch
import torch.nn.functional as F

from selfattn import attention, flash_attention
from selfattn.doctor.kinds.efficient import masks_seen, powers_seen
from selfattn.doctor.kinds.efficient import weights_seen as seen
from selfattn.doctor.kinds.efficient.exercise import first_tile_left_out
from selfattn.doctor.kinds.efficient.feature_maps import alike
from selfattn.doctor.kinds.efficient.mistakes.own_weights import not_causal

OTHERS = {"future": not_causal, "first": first_tile_left_out}


def by_rows(q, k, v, sees=lambda i: slice(i + 1)):
    """One query after the other, beside the keys that it sees."""
    rows = []
    for i in range(q.shape[-2]):
        keys = k[..., sees(i), :]
        scores = q[..., i : i + 1, :] @ keys.mT / math.sqrt(q.shape[-1])
        rows.append(scores.softmax(-1) @ v[..., sees(i), :])
    return torch.cat(rows, dim=-2)


def past(n_q, n_k):
    """The keys up to each query's own."""
    return torch.ones(n_q, n_k).bool().tril()


def told(attend, table=past, kernel=None):
    return seen.hint(attend, table, kernel, OTHERS)


@pytest.mark.parametrize(
    ("name", "sees"),
    [
        ("one too many", lambda i: slice(i + 2)),
        ("one too many", lambda i: slice(i + 2 if i % 5 else i + 1)),
        ("not causal", lambda i: slice(i - i % 5 + 5)),
        ("first tile left out", lambda i: slice(4 if i > 3 else i + 1, i + 1)),
        ("window ignored", None),
    ],
)
def test_weights_tell_which_keys_are_seen(name, sees):
    """In tiles a mask is another in each tile, and right on the whole."""
    if sees is None:
        near = past(seen.N, seen.N).triu(-3)
        assert told(by_rows, lambda n, m: near) == name
    elif name == "first tile left out":

        def late(q, k, v):
            return by_rows(q, k, v, sees=sees)[..., 4:, :]

        def whole(q, k, v):
            return F.pad(late(q, k, v), (0, 0, 4, 0))

        assert told(whole) == name
    else:
        assert told(partial(by_rows, sees=sees)) == name
    assert told(by_rows) == ""


def cut(keep, q, k, v):
    """Causal attention of which some outputs are lost."""
    return attention(q, k, v, causal=True)[..., keep, :]


def test_lost_outputs_tell_which_tile_is_left_out():
    """What has another shape was told by its shape alone."""
    assert told(partial(cut, slice(128))) == "last tile left out"
    assert told(partial(cut, slice(3, None))) == "first tile left out"


def test_keys_that_nobody_sees_tell_it_too():
    def short(q, k, v):
        return flash_attention(q, k[..., :128, :], v[..., :128, :])

    assert told(short, None) == "last tile left out"


SHARES = [
    ("no scale", lambda s, d: (s * math.sqrt(d)).softmax(-1)),
    ("divided by d", lambda s, d: (s / math.sqrt(d)).softmax(-1)),
    ("multiplied by the root", lambda s, d: (s * d).softmax(-1)),
    (
        "scaled by the number of keys",
        lambda s, d: (s * math.sqrt(d / 44)).softmax(-1),
    ),
    ("no softmax", lambda s, d: s),
    ("sigmoid instead of softmax", lambda s, d: s.sigmoid() / 50),
    ("softmax over queries", lambda s, d: s.softmax(-2)),
    ("", lambda s, d: s.softmax(-1)),
    ("", lambda s, d: 3 * s.softmax(-1)),
    ("", lambda s, d: (s.abs()).softmax(-1)),
]


@pytest.mark.parametrize(("name", "shares"), SHARES)
def test_weights_tell_which_step_is_another(name, shares):
    """Whatever the tiles, and wherever the scale is computed in them."""
    scores = torch.randn(60, 60, generator=torch.manual_seed(3)).double()
    may = torch.ones(60, 60).bool()
    assert powers_seen.hint(shares(scores, 16), scores, may, 16) == name


def test_masks_of_unequal_shares_are_no_masks():
    """A key that is hidden by a number is seen a little; that is no mask."""
    scores = torch.randn(9, 9, generator=torch.manual_seed(4))
    may = past(9, 9)
    faint = scores.masked_fill(~may, -5.0).softmax(-1)
    assert masks_seen.hint(faint, scores, may, OTHERS) == ""
    whole = scores.softmax(-1)
    assert masks_seen.hint(whole, scores, may, OTHERS) == "window ignored"


def with_features(q, k, v, divides=True, itself=0):
    """Causal attention with a kernel, in its quadratic form."""
    weights = (F.softplus(q) @ F.softplus(k).mT).tril(itself)
    return weights @ v / (weights.sum(-1, keepdim=True) if divides else 1)


def test_of_a_kernel_weights_are_products_of_features():
    tell = partial(told, kernel=alike(F.softplus))
    assert tell(with_features) == ""
    assert tell(partial(with_features, divides=False)) == "not divided"
    assert tell(partial(with_features, itself=-1)) == "not itself"
