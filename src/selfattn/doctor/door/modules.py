"""What a module looks like: by its parts, and by what it does to tokens."""

import re
from collections.abc import Iterator
from functools import partial
from itertools import product

import torch
from torch import Tensor, nn

from selfattn.doctor.copying import copy_of
from selfattn.doctor.door import functions, other_texts
from selfattn.doctor.door.names import (
    CACHES,
    MASKS,
    NETWORKS,
    SECOND,
    says,
    snake,
)
from selfattn.doctor.door.networks import has_a_network
from selfattn.doctor.door.sizes import is_vector, norms_of, widths
from selfattn.doctor.door.trying import (
    alike,
    attempt,
    close,
    drawn,
    needed,
    tensor,
)
from selfattn.doctor.kinds.blocks.handing_over import OF_PLACES
from selfattn.doctor.kinds.layer.calling import NAMES
from selfattn.doctor.kinds.norms.pictures import Call, laid_out_for
from selfattn.doctor.kinds.text_layouts import PICTURES
from selfattn.doctor.kinds.trial_calls import listed
from selfattn.doctor.patient import parameters

N = 5


def kinds_of(module: nn.Module, name: str) -> list[tuple[str, str]]:
    """The kinds that a module may be of, the likeliest first, and why."""
    if all(map(is_vector, module.parameters())):
        found = list(without_matrices(module, name))
    else:
        found = list(with_a_table(module, name)) or of_matrices(module, name)
        found = found or of_other_texts(module, name)
    return found


def of_other_texts(module: nn.Module, name: str) -> list[tuple[str, str]]:
    """The same of one that takes pictures, or texts of one length alone.

    Of convolutions, which mix as well, those alone that are called so.
    """
    called = re.search("att|transformer", snake(name))
    if other_texts.is_a_filter(module) and not called:
        return []
    for other, how in other_texts.ways(module, N, widths(module)):
        if found := of_matrices(other, name):
            return [(kind, f"{why}; {how}") for kind, why in found]
    return []


def without_matrices(
    module: nn.Module, name: str
) -> Iterator[tuple[str, str]]:
    """A norm, what a function may be, too, or what adds a table of its own."""
    norms: list[Call] = [partial(tensor, module)]
    norms += [laid_out_for(norms[0], layout) for layout in PICTURES]
    for norm, width in product(norms, widths(module)):
        kind, why = functions.which_norm(norm, width, name)
        if kind:
            yield kind, why
            return
    added = list(with_a_table(module, name))
    yield from added or functions.kinds_of(module, name)


def with_a_table(module: nn.Module, name: str) -> Iterator[tuple[str, str]]:
    """What adds a table of its own to tokens."""
    if any(isinstance(part, nn.Linear) for part in module.modules()):
        return
    for width in widths(module):
        one, other = drawn(2, 3, width), drawn(2, 3, width, seed=1)
        first, second = tensor(module, one), tensor(module, other)
        alone = tensor(module, one[:1])  # which no table for heads is added to
        same = alike(first, one) and alike(second, one)
        if not (same and alike(alone, one[:1])):
            continue
        if close(first - one, second - other) and not close(first, one):
            yield "positions", "it adds the same to all tokens"
            return


def of_matrices(module: nn.Module, name: str) -> list[tuple[str, str]]:
    """Attention, a block, or a decoder that keeps a cache."""
    if keeps_a_cache(module):
        return [("cached-decoder", "it takes what it kept, and gives it back")]
    two = takes_two(module)
    alone = NETWORKS.search(snake(name)) and not mixes(module, two)
    if is_block(module) and not alone:
        path = "a path leads past its parts, or norms and a network say so"
        kind = "decoder-block" if two else "encoder-block"
        return [(kind, f"{path}{', and it takes two sequences' * two}")]
    if not (mixes(module, two) or says(name, "self-attention")):
        return []
    why = "what a token gets depends on other tokens"
    both = [("self-attention", why)]
    if two:
        both.append(("cross-attention", f"{why}, of a second sequence"))
    return both[::-1] if asks_for_two(module) else both


def asks_for_two(module: nn.Module) -> bool:
    """Whether it cannot be called without something more, and no mask."""
    return any(not MASKS.search(n.lower()) for n in needed(module)[1:])


def keeps_a_cache(module: nn.Module) -> bool:
    """Whether what it gives holds more than weights, or a cache by name."""
    named = any(CACHES.search(n) for n in parameters(module.forward)[1:])
    for width in widths(module):
        x = drawn(2, N, width)
        for given in ((x, None), (x,), (x, x)):
            made = attempt(module, *given)
            if isinstance(made, Tensor):
                return False
            if isinstance(made, tuple) and len(made) == 2:
                kept = made[1]
                if kept is None:
                    return False
                if not isinstance(kept, Tensor):
                    return named or takes_back(module, x, kept)
                return named and kept.shape[-2:] != (N, N)  # no weights
    return named


def takes_back(module: nn.Module, x: Tensor, kept: object) -> bool:
    """Whether what it gave beside its output is what it takes, if no mask."""
    if not isinstance(kept, dict | tuple | list):
        return False
    names = parameters(module.forward)[1:]
    return any(
        attempt(partial(module, **{name: kept}), x) is not None
        for name in names
        if not MASKS.search(name.lower())
    )


def takes_two(module: nn.Module) -> bool:
    """Whether it takes a second sequence, which may be of another length."""
    names = parameters(module.forward)
    if {*names[1:]} & {*NAMES["context"]}:
        return True
    if not asks_for_two(module):
        return hears_more(module)
    if any(SECOND.search(name) for name in needed(module)):
        return True
    names = needed(module)[1:]
    for x, y in pairs(module, N + 2):
        told = [stands_for(name, y) for name in names]
        for given in ((y,), (y, y), told):
            if tensor(module, x, *given) is not None:
                return any(one is y for one in given)
    return False


def hears_more(module: nn.Module) -> bool:
    """Whether it hears a second sequence that it can do without.

    That is of another length, and each of its tokens tells.
    """
    for name in optional(module):
        for x, y in pairs(module, N + 2):
            first, *others = (
                tensor(partial(module, **{name: z}), x)
                for z in (y, turned_at(y, 0), turned_at(y, -1), None)
            )
            if alike(first, x) and all(
                alike(z, x) and not close(first, z) for z in others
            ):
                return True
    return False


def optional(module: nn.Module) -> list[str]:
    """The names of what it takes if it is there, and is no mask or cache."""
    left_out = [p.name for p in listed(module) if p.default is None]
    return [
        name
        for name in left_out
        if not (MASKS.search(name.lower()) or CACHES.search(name.lower()))
    ]


def turned_at(x: Tensor, at: int) -> Tensor:
    """The same with another token in one place."""
    other = x.clone()
    other[:, at] = 1 - x[:, at].flip(-1)
    return other


def pairs(module: nn.Module, m: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Two sequences, the second of m tokens; at first of the same width."""
    found = widths(module)
    for one, other in sorted(
        product(found, found), key=lambda both: both[0] != both[1]
    ):
        yield drawn(2, N, one), drawn(2, m, other, seed=1)


def calls(module: nn.Module, two: bool) -> Iterator[tuple[Tensor | None, ...]]:
    """What it may be called with: tokens, and what it needs besides."""
    names = needed(module)[1:]
    told = any(stands_for(name, None) is not None for name in names)
    for x, y in pairs(module, N):
        second = y if two else None
        if two or x.shape == y.shape:
            yield (x, *[second] * len(names))
            if told:
                yield (x, *(stands_for(name, second) for name in names))
        if x.shape == y.shape:
            yield (x, *[x] * len(names))


def stands_for(name: str, text: Tensor | None) -> Tensor | None:
    """What an argument is given that is called like a mask, or like places of
    tokens; any other is given a text.
    """
    if MASKS.search(name.lower()):
        return torch.ones(N, N).triu(1).bool()
    return torch.arange(N) if OF_PLACES.search(name.lower()) else text


def mixes(module: nn.Module, two: bool) -> bool:
    """Whether a token of what goes in changes what others get.

    Tokens may be the second axis or the first.
    """
    for given in calls(module, two):
        made = tensor(module, *given)
        if made is None or made.ndim < 3:
            continue
        return any(moves_others(module, given, made, axis) for axis in (1, 0))
    return False


def moves_others(
    module: nn.Module,
    given: tuple[Tensor | None, ...],
    made: Tensor,
    axis: int,
) -> bool:
    """Whether what stands at 1 of an axis changes what is made elsewhere."""
    moved = [x if x is None else x.clone() for x in given]
    for x in moved:
        if x is not None and x.ndim == made.ndim:
            here = x.select(axis, 1)
            here.copy_(here.flip(-1) + 1)
    after = tensor(module, *moved)
    if after is None or after.shape != made.shape or after.shape[axis] < 2:
        return False
    change = (after - made).abs().transpose(0, axis).flatten(1).amax(dim=1)
    return bool((torch.cat([change[:1], change[2:]]) > 1e-6).any())


def is_block(module: nn.Module) -> bool:
    """Whether a path leads past it; or it has two norms, and a network or
    such a name.
    """
    silent = copy_of(module)
    with torch.no_grad():
        for name, parameter in silent.named_parameters():
            if parameter.ndim > 1 or name.endswith("bias"):
                parameter.zero_()
    ways = list(calls(silent, takes_two(module)))
    for given in ways:
        made = tensor(silent, *given)
        x = given[0]
        if x is not None and alike(made, x) and same_direction(x, made):
            return True
    called_so = says(type(module).__name__, "encoder-block")
    return norms_of(module) > 1 and (
        called_so or any(has_a_network(module, *given) for given in ways)
    )


def same_direction(x: Tensor, y: Tensor) -> bool:
    """Whether tokens are multiples of each other, but for their means."""
    x, y = (t - t.mean(dim=-1, keepdim=True) for t in (x, y))
    return bool((torch.cosine_similarity(x, y, dim=-1) > 0.99).all())
