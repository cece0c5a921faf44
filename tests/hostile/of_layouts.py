"""Hostile layouts: the same numbers, lying in memory in other ways."""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from hostile.trials import Case, plain, with_gradients
from hostile.verdicts import Trial


def transposed(x: Tensor) -> Tensor:
    """The last two axes the other way round in memory."""
    return x.mT.contiguous().mT if x.ndim > 1 else every_other(x)


def every_other(x: Tensor) -> Tensor:
    """With numbers of somebody else's in between."""
    return torch.stack((x, torch.zeros_like(x)), dim=-1)[..., 0]


def within(x: Tensor) -> Tensor:
    """A piece of something larger."""
    larger = torch.zeros([n + 3 for n in x.shape], dtype=x.dtype)
    where = tuple(slice(2, 2 + n) for n in x.shape)
    larger[where] = x
    return larger[where]


def first_axis_last(x: Tensor) -> Tensor:
    """The first axis is the one that lies together."""
    return x.movedim(0, -1).contiguous().movedim(-1, 0) if x.ndim else x


def one_for_all(x: Tensor) -> Tensor:
    """The first axis repeats one piece of memory."""
    return x[:1].expand_as(x) if x.ndim else x


def one_number(x: Tensor) -> Tensor:
    """All the same place in memory."""
    return x.reshape(-1)[:1].reshape([1] * x.ndim).expand_as(x)


def conjugated(x: Tensor) -> Tensor:
    """With PyTorch's bit set that says: take the negative."""
    return torch._neg_view(-x) if x.is_floating_point() else x


LAYOUTS: tuple[Callable[[Tensor], Tensor], ...] = (
    *(transposed, every_other, within, first_axis_last),
    *(one_for_all, one_number, conjugated),
)


def trials(case: Case) -> Iterator[Trial]:
    """Each tensor alone, and all at once."""
    tensors = {n: x for n, x in case.call.tensors().items() if x.numel()}
    if not tensors:
        return
    for name, x in tensors.items():
        for layout in case.rng.sample(LAYOUTS, 4):
            detail = f"{name} {layout.__name__}"
            yield laid_out(case, detail, {name: layout(x)})
    for layout in LAYOUTS:
        changed = {n: layout(x) for n, x in tensors.items()}
        yield laid_out(case, f"all {layout.__name__}", changed)


def laid_out(case: Case, detail: str, changed: dict[str, Tensor]) -> Trial:
    """Such a call against the same numbers plainly laid out."""
    call = case.call.having(**changed)
    simple = case.call.having(**{n: x.clone() for n, x in changed.items()})
    return case.trial(
        "a layout",
        detail,
        call,
        lambda: with_gradients(simple, plain),
        run=lambda: with_gradients(call),
    )
