"""The feature maps that stand for a softmax: of queries, and of keys.

Most put one map on both. But who takes a softmax over each query's features
shares out its keys by another one, over the tokens.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor

from selfattn.doctor.kind import UnclearError
from selfattn.doctor.kinds import trial_calls
from selfattn.doctor.patient import Facts
from selfattn.doctor.probes import numbers

Map = Callable[[Tensor], Tensor]
Call = Callable[..., Any]
ALONE = "Say kernel=…, too: the feature map of its queries."


class Maps(NamedTuple):
    """What is put on queries, and what on keys, each (…, n, features)."""

    of_q: Map
    of_k: Map


def alike(kernel: Map) -> Maps:
    """The same map for queries and for keys."""
    return Maps(kernel, kernel)


def claimed(facts: Facts) -> Maps | None:
    """The maps that are claimed; None if no kernel is.

    Raises:
        UnclearError: if the map of the keys alone was told.
    """
    kernel, of_keys = facts.get("kernel"), facts.get("key_kernel")
    if kernel is None:
        if of_keys is not None:
            raise UnclearError(ALONE)
        return None
    return alike(kernel) if of_keys is None else Maps(kernel, of_keys)


def over_features(x: Tensor) -> Tensor:
    """A softmax over the features of each token."""
    return x.softmax(dim=-1)


def over_tokens(x: Tensor) -> Tensor:
    """A softmax over the tokens, of each feature."""
    return x.softmax(dim=-2)


# Pairs that somebody has published, and that others build again.
PAIRS = (Maps(over_features, over_tokens),)


def seen(call: Call, front: tuple[int, ...], n: int) -> Iterator[Facts]:
    """The pairs of maps that give its numbers, as facts."""
    q, k, v = (numbers(*front, n, 11, seed=seed) for seed in range(3))
    said = trial_calls.outcome(call, q, k, v)
    if not isinstance(said, Tensor) or said.shape != v.shape:
        return
    for of_q, of_k in PAIRS:
        weights = of_q(q) @ of_k(k).mT
        right = weights @ v / weights.sum(dim=-1, keepdim=True)
        if torch.allclose(said, right.to(said), atol=1e-4):
            yield {"kernel": of_q, "key_kernel": of_k}


def of_the_keys() -> Iterator[Facts]:
    """What may be meant of keys by whoever told of one map alone."""
    for _, of_k in PAIRS:
        yield {"key_kernel": of_k}
