"""Scores that are made otherwise, or heads that talk before they share."""

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from selfattn.doctor.deviations.scores import cosine
from selfattn.doctor.kinds.layer.learnt.left_over import (
    NOTHING,
    Steps,
    maps_left,
    numbers_left,
)
from selfattn.doctor.kinds.layer.parts import Projections

WARMTH = re.compile("temp|tau|scale|logit|gamma|beta")
TALK = re.compile("talk|pre|post|mix|head|logit|weight")
FORMS: tuple[Callable[[Tensor], Tensor], ...] = (
    lambda t: t,
    torch.exp,
    F.softplus,
    lambda t: 1 / t,
    lambda t: torch.exp(-t),
)
Mix = Callable[[Tensor], Tensor]


def temperatures(module: nn.Module, parts: Projections) -> Sequence[Steps]:
    """The ways in which a number that is learnt may scale the scores."""
    for name, x in numbers_left(module, parts):
        last = name.lower().rpartition(".")[-1]
        if WARMTH.search(last) and x.numel() in (1, parts.n_heads):
            return [*scaled_by(x.flatten(), parts)]
    return NOTHING


def scaled_by(learnt: Tensor, parts: Projections) -> Iterator[Steps]:
    """Cosines or products times such a number, in some form of it."""
    root = (parts.q.W.shape[-1] // parts.n_heads) ** -0.5
    made = ((cosine, 1.0), (None, root), (None, 1.0))
    for (compare, more), form in product(made, FORMS):
        scale = (form(learnt) * more)[:, None, None]
        steps = {"scale": lambda width, scale=scale: scale}
        yield steps | ({"compare": compare} if compare else {})


def sums_of_both(module: nn.Module, parts: Projections) -> Sequence[Steps]:
    """Additive scores: a map to one number, of tanh of query and key."""
    d = parts.q.W.shape[-1] // parts.n_heads
    left = [*numbers_left(module, parts)]
    own = [
        x.reshape(-1, d)
        for name, x in left
        if x.numel() in (d, parts.n_heads * d) and "bias" not in name
    ]
    if len(own) != 1 or len(left) > len(own) + 1:
        return NOTHING

    def compare(q: Tensor, k: Tensor) -> Tensor:
        both = torch.tanh(q[..., :, None, :] + k[..., None, :, :])
        return (both * own[0].to(q)[:, None, None]).sum(-1)

    return [{"compare": compare, "scale": lambda width: 1.0}]


def sigmoids(module: nn.Module, parts: Projections) -> Sequence[Steps]:
    """Each weight for itself, in a layer that is called after that."""
    if "sigmoid" not in type(module).__name__.lower():
        return NOTHING
    shifts: list[Callable[[Tensor], Any]] = [
        lambda s: s.isfinite().sum(-1, keepdim=True).log(),
        lambda s: torch.tensor(float(s.shape[-1])).log(),
        lambda s: 0.0,
    ]
    for name, x in numbers_left(module, parts):
        if "bias" in name and x.numel() in (1, parts.n_heads):
            shifts.insert(0, partial(less, x.flatten()[:, None, None]))
    return [{"weigh": partial(each, shift)} for shift in shifts]


def less(learnt: Tensor, scores: Tensor) -> Tensor:
    """What is taken off, if it is a number to be added."""
    return -learnt.to(scores)


def each(shift: Callable[[Tensor], Any], scores: Tensor) -> Tensor:
    """A weight of each score for itself, once something is taken off."""
    return torch.sigmoid(scores - shift(scores))


def talking(module: nn.Module, parts: Projections) -> Sequence[Steps]:
    """The ways in which heads may mix their scores, or their weights."""
    found = [*mixes(module, parts)]
    if len(found) == 2:
        pre, post = found
        names = f"{pre[0]} {post[0]}"
        if re.search("post.*pre|weight.*logit", names):
            pre, post = post, pre
        return [
            {"bend": one, "after": afterwards(other)}
            for one, other in zip(pre[1], post[1], strict=True)
        ]
    if len(found) == 1:
        ways = found[0][1]
        later = [{"after": afterwards(mix)} for mix in ways]
        return [*({"bend": mix} for mix in ways), *later]
    return NOTHING


def afterwards(mix: Mix) -> Callable[[Tensor, Tensor | None], Tensor]:
    """A mix of weights, of which none is for what is hidden.

    A map that adds a number to every weight adds it there, too.
    """

    def after(weights: Tensor, allowed: Tensor | None) -> Tensor:
        mixed = mix(weights)
        return mixed if allowed is None else mixed.where(allowed, 0.0)

    return after


def mixes(
    module: nn.Module, parts: Projections
) -> Iterator[tuple[str, list[Mix]]]:
    """What mixes heads with heads, with its name; a bare matrix both ways."""
    h, known = parts.n_heads, set()
    listed: list[tuple[str, Any]] = [*maps_left(module, parts)]
    listed += [
        (name, part)
        for name, part in module.named_modules()
        if isinstance(part, nn.Conv2d) and part.groups == 1
    ]
    for name, part in listed:
        if part.weight.squeeze().shape == (h, h) and h > 1:
            known |= {id(x) for x in part.parameters()}
            W, b = part.weight.detach().view(h, h), part.bias
            one = by_heads(W, None if b is None else b.detach())
            yield name, [one, one]
    for name, x in module.named_parameters(recurse=False):
        square = x.ndim == 2 and x.shape == (h, h) and h > 1
        if square and id(x) not in known and TALK.search(name.lower()):
            yield name, [by_heads(x.detach()), by_heads(x.detach().mT)]


def by_heads(W: Tensor, b: Tensor | None = None) -> Mix:
    """Each head's table as a sum of those of all."""

    def mix(table: Tensor) -> Tensor:
        mixed = torch.einsum("ij,bjqk->biqk", W.to(table), table)
        return mixed if b is None else mixed + b.to(table)[:, None, None]

    return mix
