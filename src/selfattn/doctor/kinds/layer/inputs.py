"""Which argument is x, and which the context, where no name tells."""

import inspect
from collections.abc import Iterator
from itertools import product

import torch
from torch import Tensor, nn

from selfattn.doctor.kinds import trial_calls
from selfattn.doctor.kinds.layer.calling import NAMES, queries_keys_values
from selfattn.doctor.kinds.layer.constructing import is_rest
from selfattn.doctor.kinds.layer.named_masks import MASKLIKE, NO_MASK
from selfattn.doctor.kinds.layer.parts import (
    affines,
    by_word,
    heads_inside,
)
from selfattn.doctor.patient import Facts, parameters
from selfattn.doctor.probes import numbers

STATES = ("hidden",)  # of a decoder, say: they are texts, and hide nothing
EITHER = ("y",)  # a context's names that may be x's as well
LIKE = ("enc", "mem", "source", "src", "cond", "key", "value")
BATCH, N_Q, N_K = 2, 5, 3  # no two alike: the output is as long as x


def inputs_of(module: nn.Module, told: Facts) -> dict[str, str]:
    """The names of x and of the context, if the output tells which is which.

    Empty, if it takes queries, keys and values by their names; or if the
    second of two arguments plainly has a name for a context: who then asks
    with that makes a mistake. Where no call comes out as long as one of its
    inputs, their names tell, or else x comes first.
    """
    if queries_keys_values(parameters(module)):
        return {}
    needed = asked_for(module, told)
    texts = [name for name in needed if not is_to_hide(name)]
    if len(texts) < 2 and not may_be_told(module):
        texts = needed[:2]  # it needs two, whatever they are called
    if told.get("mask") or told.get("padding"):
        texts = texts[: max(2, len(needed) - 1)]  # one of them is the mask
    known = {*dict(told.get("names") or {})}
    if len(texts) != 2 or {"x", "context", "qkv"} & known:
        return {}
    first, second = texts
    if is_context(second) and not is_context(first):
        return {}  # so it is usual
    hides = [name for name in needed if name not in texts][:1]
    found = by_calls(module, told, (first, second), hides)
    if found:
        return found
    turned = sounds_like_one(first) and not sounds_like_one(second)
    pair = (second, first) if turned else (first, second)
    return dict(zip(("x", "context"), pair, strict=True))


def asked_for(module: nn.Module, told: Facts) -> list[str]:
    """The names of what it must be given, and of which nothing was told."""
    names = dict(told.get("names") or {})
    return [
        name
        for name, one in inspect.signature(module.forward).parameters.items()
        if one.default is one.empty
        and not is_rest(one)
        and name not in (told.get("call") or {})
        and name not in names.values()
    ]


def may_be_told(module: nn.Module) -> bool:
    """Whether something may be left out that sounds like a context."""
    listed = inspect.signature(module.forward).parameters.items()
    return any(
        sounds_like_one(name) and not is_to_hide(name)
        for name, one in listed
        if one.default is not one.empty
    )


def is_context(name: str) -> bool:
    """Whether a name is one for a context, and for nothing else."""
    return name in NAMES["context"] and name not in EITHER


def sounds_like_one(name: str) -> bool:
    """Whether something in a name makes one think of a context."""
    words = {*NAMES["context"], *LIKE} - {*EITHER}
    return any(word in name.lower() for word in words)


def by_calls(
    module: nn.Module,
    told: Facts,
    texts: tuple[str, str],
    hides: list[str],
) -> dict[str, str]:
    """Which is which, as the output is as long as x; empty if no call is."""
    called, given = trial_calls.alone(module), dict(told.get("call") or {})
    for x, context in pairs(called, told.get("layout")):
        for pair in (texts, texts[::-1]):
            named = {**dict(zip(pair, (x, context), strict=True)), **given}
            for mask in shown(hides, told.get("layout") == "NBD", context):
                output = trial_calls.outcome(called, **named, **mask)
                if comes_from(output, x):
                    return dict(zip(("x", "context"), pair, strict=True))
    return {}


def shown(
    hides: list[str], turned: bool, context: Tensor
) -> Iterator[dict[str, Tensor]]:
    """Nothing, or the argument that hides: lengths, or masks of any axes."""
    if not hides:
        yield {}
        return
    n, m = N_Q, context.shape[1 - turned]
    yield {hides[0]: torch.full((BATCH,), m)}
    for size in ((m,), (1, 1, m), (n, m), (1, n, m)):
        yield {hides[0]: torch.ones(BATCH, *size).bool()}
    yield {hides[0]: torch.ones(n, m).bool()}


def is_to_hide(name: str) -> bool:
    """Whether an argument is called as one that tells what is hidden."""
    known = {*NAMES["mask"], *NAMES["padding"]}
    if name in known or any(word in name for word in (*NO_MASK, *STATES)):
        return name in known
    return any(word in name for word in (*MASKLIKE, "pad"))


def pairs(
    module: nn.Module, layout: str | None
) -> Iterator[tuple[Tensor, Tensor]]:
    """Pairs of an x and a context, of the widths that its maps take."""
    both = list(product(may_be_wide(module)[:6], repeat=2))
    for turned in (False, True):
        if layout == ("BND" if turned else "NBD"):
            continue
        for d_x, d_context in both:
            x = numbers(BATCH, N_Q, d_x, seed=1)
            context = numbers(BATCH, N_K, d_context, seed=2)
            if turned:
                x, context = x.transpose(0, 1), context.transpose(0, 1)
            yield x, context


def may_be_wide(module: nn.Module) -> list[int]:
    """The widths that its inputs may have, the likeliest first.

    Of maps of a head's features, each head may get a piece of x.
    """
    maps = [*by_word(module, {}).values(), *(x for _, x in affines(module))]
    sizes = [one.W.shape[0] for one in maps]
    sizes += [x.shape[-1] for x in module.parameters() if x.ndim == 2]
    sizes += [one.W.shape[1] for one in maps]
    heads = heads_inside(module) or 1
    every = dict.fromkeys([*sizes, *(heads * size for size in sizes)])
    return list(every)


def comes_from(output: object, x: Tensor) -> bool:
    """Whether an output has x's axes, but for the width."""
    if isinstance(output, tuple) and output:
        output = output[0]
    return isinstance(output, Tensor) and output.shape[:-1] == x.shape[:-1]
