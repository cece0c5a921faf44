"""That a mechanism has weights of its own, found by what it does.

Who claims a kernel shares out a row by numbers that each depend on one query
and one key. So how many times one key's weight is another's is the same
whatever the other keys are, as far away as they may be. A sum that is not
rescaled from tile to tile is not like that.
"""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from selfattn.doctor.kinds import trial_calls
from selfattn.doctor.kinds.attention import untold_facts as of_attention
from selfattn.doctor.kinds.efficient import feature_maps
from selfattn.doctor.kinds.efficient.calling import is_claimed
from selfattn.doctor.patient import Facts
from selfattn.doctor.probes import numbers

N = 140  # tokens: more than any tile has
NEAR = 1e-3


def perhaps(thing: Any, facts: Facts) -> Iterator[Facts]:
    """What may be meant of attention, or else that its weights are its own."""
    yield from of_attention.perhaps(thing, facts)
    if facts.get("kernel") is not None and "key_kernel" not in facts:
        yield from feature_maps.of_the_keys()
    if not is_claimed(facts) and is_of_pairs(thing, facts):
        yield {"formula": "own"}


def is_of_pairs(thing: Any, facts: Facts) -> bool:
    """Whether the ratio of two weights tells nothing of the other keys.

    Of each two keys, the first and one amid the others, whose values alone
    are not zero.
    """
    for call, q, k, v in of_attention.of_axes(thing, facts, N):
        v = torch.zeros_like(v)
        v[..., 0, 0], v[..., N // 2, 1] = 1.0, 1.0
        others = 2 * numbers(*k.shape, seed=9)
        for kept in (0, N // 2):
            others[..., kept, :] = k[..., kept, :]
        said = [
            trial_calls.outcome(call, *given, v)
            for given in ((q, k), (q, others), (2 * q, k))
        ]
        if not all(isinstance(x, Tensor) for x in said):
            return False
        return are_shared(*said[:2]) and not are_powers(said[0], said[2])
    return False


def are_powers(one: Tensor, other: Tensor) -> bool:
    """Whether, with scores twice as large, a ratio of weights is squared.

    So it is with a softmax, of whatever scale: that is no kernel of its own.
    """
    (a, b), (c, d) = (x[..., -1, :2].unbind(-1) for x in (one, other))
    return torch.allclose((a / b).square(), c / d, rtol=20 * NEAR)


def are_shared(one: Tensor, other: Tensor) -> bool:
    """Whether two weights of the last query have one ratio in both."""
    (a, b), (c, d) = (x[..., -1, :2].unbind(-1) for x in (one, other))
    moved = (a - c).abs() > NEAR * a.abs()
    alike = (a * d - b * c).abs() <= NEAR * (a * d).abs()
    return bool(moved.any() and alike.all() and (a * b).abs().min() > 0)
