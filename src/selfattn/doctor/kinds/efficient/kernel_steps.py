"""Attention with a kernel in steps, and what is done otherwise at each."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from selfattn.doctor.deviations import scores, transposed
from selfattn.doctor.deviations.design import (
    Deviation,
    Width,
    as_they_are,
    pairs,
    singles,
    unchanged,
)
from selfattn.doctor.exercise import Mistake, mistake
from selfattn.doctor.kinds.attention.layouts import (
    INNER,
    TO,
    laid_back,
    laid_out,
)
from selfattn.doctor.kinds.efficient.feature_maps import (
    Map,
    Maps,
    over_features,
)
from selfattn.doctor.kinds.efficient.mistakes import kernels
from selfattn.doctor.probes import Probe
from selfattn.masks import causal_mask

FAR = 1e-19  # half of the powers of ten that float32 has, so to speak


@dataclass(frozen=True)
class Kernel:
    """How each step is done; `mapped` takes them in this order."""

    enter: Callable[..., Any]  # of q, k, v
    of_q: Map  # the features of queries
    of_k: Map  # and of keys
    above: Map  # of the keys' features, where they meet the values
    below: Map  # and where they are summed up, to be divided by
    values: Callable[[Tensor, Tensor], Tensor]  # of features and v
    leave: Callable[[Tensor, Any], Tensor]


@mistake
def another_feature_map():
    """Its features are others than those that it claims.

    Cause: The feature map lacks what keeps it positive, such as the + 1
        behind elu, or is another function.
    Cure: The one you claim, such as elu(x) + 1.
    Chapter: bench#a-window-and-no-softmax
    """


def first_text(x: Tensor) -> Tensor:
    """The first text, for all."""
    return x[:1].expand_as(x) if x.ndim > 2 else x


def usual(kernel: Maps) -> Kernel:
    """What one claims who claims these feature maps."""
    return Kernel(
        enter=as_they_are,
        of_q=kernel.of_q,
        of_k=kernel.of_k,
        above=unchanged,
        below=unchanged,
        values=lambda features, v: v,
        leave=unchanged,
    )


def mapped(
    steps: Kernel, q: Tensor, k: Tensor, v: Tensor, causal: bool
) -> Tensor:
    """The output, in its quadratic form."""
    width = Width(q.shape[-1], v.shape[-1], q.shape[-2], k.shape[-2])
    q, k, v = steps.enter(q, k, v)
    queries, keys = steps.of_q(q), steps.of_k(k)
    above = queries @ steps.above(keys).mT
    below = queries @ steps.below(keys).mT
    if causal:
        past = causal_mask(q.shape[-2], k.shape[-2])
        above, below = above * past, below * past
    output = above @ steps.values(keys, v) / below.sum(-1, keepdim=True)
    return steps.leave(output, width)


OTHERS: tuple[Map, ...] = (
    F.elu,
    torch.abs,
    lambda x: x.abs() + 1,
    torch.exp,
    unchanged,
    torch.sigmoid,
    torch.square,
    F.softplus,
    lambda x: torch.relu(x) + 1e-3,
    lambda x: torch.relu(x) + 1,
)
MAPS: tuple[tuple[Any, Map], ...] = (
    (kernels.relu_for_its_features, torch.relu),
    (kernels.softmax_for_its_features, over_features),
    *((another_feature_map, one) for one in OTHERS),
)
FIRST = scores.keys_of_the_first_sequence
KNOWN = (
    *(Deviation({"of_q": one, "of_k": one}, name) for name, one in MAPS),
    *(Deviation({"of_k": one}, another_feature_map) for one in OTHERS),
    *(Deviation({"of_q": one}, another_feature_map) for one in OTHERS),
    *scores.ENTRANCES,
    Deviation({"values": lambda f, v: f}, scores.keys_are_the_values),
    Deviation({"above": first_text}, FIRST),
    Deviation({"below": first_text}, FIRST),
    Deviation({"above": first_text, "below": first_text}, FIRST),
    *scores.EXITS[:1],
    *transposed.ALL,
    *scores.DETACHED[1:-1],
)


def taken_apart(kernel: Maps, always: bool, layout: str) -> dict[str, Any]:
    """What is done otherwise by who claims these feature maps."""
    base = usual(kernel)
    inner = INNER.get(layout.partition(TO)[0], layout.partition(TO)[0])

    def answer(change: Callable[[Kernel], Kernel]) -> Callable[..., Any]:
        steps = change(base)

        def attend(
            q: Tensor, k: Tensor, v: Tensor, causal: bool = False
        ) -> Any:
            front = q.shape[:-2]
            q, k, v = (laid_out(x, inner) for x in (q, k, v))
            output = mapped(steps, q, k, v, causal or always)
            return laid_back(output, inner, front)

        return attend

    deviations: tuple[Mistake, ...] = singles(KNOWN, answer)
    return {
        "deviations": deviations,
        "second": lambda: pairs(KNOWN, answer),
    }


def holds(kernel: Maps, probe: Probe) -> bool:
    """Whether a map's features of a probe are numbers that float32 holds.

    Where they are all next to nothing, or as large as none, nothing is to be
    divided: that lies in the map that one claims, and not in how it is used.
    """
    given = probe.make()
    try:
        q, k = (given[name].double() for name in "qk")
        queries, keys = kernel.of_q(q), kernel.of_k(k)
        total = queries @ keys.mT
    except Exception:  # which is for the probe to say
        return True
    largest = max(queries.abs().max(), keys.abs().max())
    return bool(largest < 1 / FAR and (total.abs().sum(-1) > FAR).all())
