"""Norms of what goes into a layer of attention, before it is projected."""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn

from selfattn.doctor.copying import copy_of
from selfattn.doctor.kinds.layer.norming import is_norm

Norm = Callable[[Tensor], Tensor]
Enter = Callable[[Tensor, Tensor], tuple[Tensor, Tensor]]
MOST = 2  # norms: one for x and one for a context


def entries(
    module: nn.Module, d_model: int, d_context: int, cross: bool
) -> Iterator[Enter | None]:
    """How x and a context may be normed first; None: not at all.

    Whoever makes such a norm mostly uses it, so that comes before none.
    """
    found = [
        part
        for part in module.children()
        if is_norm(part) and size(part) in (d_model, d_context)
    ][:MOST]
    usual = [in_any_type(norm) for norm in found]
    if cross and len(usual) == MOST:  # each is there for something
        yield entered(*usual)
        yield entered(*usual[::-1])
    for one in usual if cross else ():
        yield entered(one, None)
    for one in usual:
        yield entered(one, one)
    for one in usual if cross else ():
        yield entered(None, one)
    yield None


def size(norm: nn.Module) -> int:
    """How many features a norm has learnt something for."""
    return next((x.numel() for x in norm.parameters()), 0)


def in_any_type(norm: nn.Module) -> Norm:
    """A norm that takes numbers of any type, by a copy in each."""
    known: dict[torch.dtype, nn.Module] = {}

    def normed(x: Tensor) -> Tensor:
        if x.dtype not in known:
            known[x.dtype] = copy_of(norm).to(x.dtype)
        said: Tensor = known[x.dtype](x)
        return said

    return normed


def entered(own: Norm | None, other: Norm | None) -> Enter:
    """X and a context, each normed if there is a norm for it."""

    def enter(x: Tensor, context: Tensor) -> tuple[Tensor, Tensor]:
        x = x if own is None else own(x)
        return x, context if other is None else other(context)

    return enter
