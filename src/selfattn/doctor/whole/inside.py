"""The attention inside a whole model: found, and examined where it stands."""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from selfattn.doctor.copying import copy_of
from selfattn.doctor.engine.called_parts import alone
from selfattn.doctor.exercise import Mistake
from selfattn.doctor.whole.calling import Whole, some_ids, tensors
from selfattn.doctor.whole.seeing import N, moved, said

ROWS = 2  # texts in which it is looked at


class Played(NamedTuple):
    """A part as the model calls it."""

    call: Callable[[Tensor, Tensor], Tensor]  # of its tokens, and others
    x: Tensor  # those that it was called with
    other: Tensor | None  # tokens of another text, if it was given some
    lone: bool  # whether it was given nothing else


class Verdict(NamedTuple):
    """What is said of one layer's attention."""

    words: str
    mistake: Mistake | None = None


def attentions(model: nn.Module) -> dict[str, nn.Module]:
    """The innermost parts that are called attention and have matrices."""
    found = {
        name: module
        for name, module in model.named_modules()
        if name and is_called_so(module) and has_matrices(module)
    }
    return {
        name: module
        for name, module in found.items()
        if not any(other.startswith(f"{name}.") for other in found)
    }


def is_called_so(module: nn.Module) -> bool:
    """Whether its class is named after attention."""
    name = type(module).__name__.lower()
    return "att" in name or "multihead" in name or name == "mha"


def has_matrices(module: nn.Module) -> bool:
    """Whether there is something to project with."""
    return any(x.ndim > 1 for x in module.parameters())


def played(whole: Whole, part: nn.Module) -> Played | None:
    """A part as the model calls it; None if it is not called with tokens."""
    calls: list[tuple[Any, Any]] = []

    def note(module: nn.Module, args: Any, kwargs: Any) -> None:
        calls.append((copy_of(args), copy_of(kwargs)))

    hook = part.register_forward_pre_hook(note, with_kwargs=True)
    try:
        said(whole, some_ids(whole, ROWS, N))
    finally:
        hook.remove()
    args, kwargs = calls[0] if calls else ((), {})
    given = [*tensors((args, kwargs))]
    texts = [x for x in given if is_text(x)]
    if not texts:
        return None
    x = texts[0]
    others = [y for y in given if is_text(y) and y.shape[-2] != x.shape[-2]]
    memory = others[0] if others else None

    def call(new: Tensor, another: Tensor) -> Tensor:
        def put(one: Any) -> Any:
            for old, fresh in ((x, new), (memory, another)):
                if is_same(one, old):
                    return fresh
            return copy_of(one)

        named = {n: put(one) for n, one in kwargs.items()}
        with torch.no_grad():
            value = part(*map(put, args), **named)
        output: Tensor = value[0] if isinstance(value, tuple) else value
        return output

    return Played(call, x, memory, all(is_same(y, x) for y in given))


def is_same(one: Any, other: Tensor | None) -> bool:
    """Whether something is a tensor, and equal to another."""
    return (
        isinstance(one, Tensor)
        and other is not None
        and one.shape == other.shape
        and torch.equal(one, other)
    )


def is_text(x: Tensor) -> bool:
    """Whether something is tokens of the texts in which it is looked at."""
    return x.is_floating_point() and x.ndim == 3 and len(x) == ROWS


def other_at(x: Tensor, at: int) -> Tensor:
    """The opposite token at one place of the first text."""
    other = x.clone()
    other[0, at] = -x[0, at] + 1
    return other


def looked_at(whole: Whole, at: Played | None) -> Verdict:
    """What is to be seen of one layer as the model calls it."""
    if at is None:
        return Verdict("not called with tokens")
    x, none = at.x, torch.zeros(0)
    memory = none if at.other is None else at.other
    before = at.call(x, memory)
    if before.shape[:2] != x.shape[:2]:
        return Verdict("gives something else than tokens")
    n = x.shape[1]
    columns = [
        moved(before, at.call(other_at(x, j), memory)) for j in range(n)
    ]
    seen, *others = torch.stack(columns, dim=-1)
    if any(other.any() for other in others):
        return Verdict("ill: texts of a batch meet in it")
    if at.other is not None:
        if moved(before, at.call(x, 1 - memory)).any():
            return Verdict("healthy: it hears another text")
        return Verdict("ill: it does not hear the other text")
    return heard(seen, whole.kind)


def heard(seen: Tensor, kind: str) -> Verdict:
    """What is said of who hears whom, (n, n), in one layer."""
    if seen.triu(1).any():
        if kind == "language-model":
            return Verdict("ill: it hears the future")
        return Verdict("healthy: it hears both sides")
    if seen.tril(-1).any():
        return Verdict("healthy: it hears the past")
    return Verdict("ill: a token hears no other")


def examined(part: nn.Module) -> Verdict | None:
    """What the doctor says of a part alone; None if it finds no name."""
    said = {"layout": "BND", "dtypes": ["float32"]}
    found = alone(part, "self-attention", said)
    if found is None:
        return None
    return Verdict(found.words, found.mistake)


def of_layers(whole: Whole, fresh: nn.Module) -> dict[str, Verdict]:
    """A verdict for the attention of each layer.

    Of several that one class makes, the first is asked alone, too, in the
    type in which it was handed over.
    """
    found: dict[str, Verdict] = {}
    known: set[type] = set()
    apart = attentions(fresh)
    for name, part in attentions(whole.model).items():
        at = played(whole, part)
        found[name] = looked_at(whole, at)
        well = found[name].words.startswith("healthy")
        if well and at and at.lone and type(part) not in known:
            known.add(type(part))
            found[name] = examined(apart[name]) or found[name]
    return found
