"""Spoilt: whether a number is NaN or infinite, where one can look.

To look costs next to nothing on a processor. On a GPU one would have to wait
for the answer, and while PyTorch traces or transforms there is none.
"""

import math
import threading
from collections.abc import Callable
from functools import partial
from typing import Any, TypeGuard

import torch
from torch import Tensor, nn
from torch.nn.modules.module import _global_forward_pre_hooks

from selfattn.checks import check_floats
from selfattn.mismatches import check_filled
from selfattn.signatures import shown
from selfattn.transforms import (
    is_fake,
    is_of_own_ways,
    is_traced,
    is_transformed,
)

MODEST = nn.Linear, nn.LayerNorm, nn.RMSNorm, nn.Embedding
LARGE = 1e15  # what is larger may overflow float32 when it is squared


def can_look(x: Tensor) -> bool:
    """Whether numbers are at hand: not traced, nor transformed, nor faked,
    nor on a GPU, which one would have to wait for.
    """
    if torch.compiler.is_compiling():
        return False
    if not x.is_cpu or is_traced() or is_fake():
        return False
    return not (is_of_own_ways(x) or is_transformed())


def largest(x: Tensor) -> float:
    """How far from zero any number is; NaN, if one is.

    A norm would say so too, but takes ten times as long on a processor.

    >>> largest(torch.tensor([1.0, -3.0])), largest(torch.tensor([torch.nan]))
    (3.0, nan)
    """
    least, most = x.detach().aminmax()
    return torch.maximum(-least, most).item()


def overflows(*tensors: Tensor) -> bool:
    """Whether a number is so large that squares and sums may overflow, though
    another be NaN.

    In float64, which then computes them, they do not. Not asked where one
    cannot look, or would have to wait for a GPU.
    """
    for x in tensors:
        if not can_look(x) or not x.numel():
            continue
        most = largest(x)
        if math.isnan(most):  # above which nothing is
            most = largest(x.nan_to_num(0.0, math.inf, -math.inf))
        if most > LARGE:
            return True
    return False


def is_spoilt(x: Tensor) -> bool:
    """Whether a number is NaN or infinite, where one can look.

    >>> is_spoilt(torch.tensor([3e38, torch.nan]))
    True
    >>> is_spoilt(torch.tensor([3e38, 3e38]))  # though their sum is
    False
    """
    if not can_look(x):
        return False
    half = x.element_size() < 4
    total = x.sum(dtype=torch.float32) if half else x.sum()
    return not (math.isfinite(total.item()) or bool(x.isfinite().all()))


def projected(
    layer: Callable[[Tensor], Tensor],
    x: Tensor,
    width: int | None = None,
    *,
    draws: bool = True,
    of: object = None,
) -> Tensor:
    """What a layer makes of tokens, the keys-to-be; one that is spoilt passes
    nothing back to its weights, which would take 0 · NaN for their gradient.

    If there is one, and a gradient is asked for, the layer is called twice,
    its hooks with it; what it draws, as dropout does, it draws once.

    Args:
        layer: makes of each token one that does not depend on the others.
        x: tokens, (..., n, d).
        width: how many features it makes; any number when None.
        draws: whether it may draw random numbers, as far as is known.
        of: what to name in an error; the layer itself when None.

    Raises:
        TypeError: if it makes no tensor.
        ValueError: if it makes more or fewer tokens, or others; or if one of
            its weights is on meta, and x is not.

    >>> layer = torch.nn.Linear(1, 1, bias=False)
    >>> made = projected(layer, torch.tensor([[2.0], [torch.nan]]))
    >>> torch.autograd.grad(made[0, 0], layer.weight)
    (tensor([[2.]]),)
    """
    draws = draws and type(layer) is not nn.Linear
    drawn = before_drawing(x) if draws else None
    if isinstance(of, nn.Module):
        check_filled(of, x)
    made = layer(spared(layer, x))
    made = a_token_each(layer if of is None else of, made, x, width)
    if not (
        made.requires_grad and shows_what_is_spoilt(layer, x, made, draws)
    ):
        return made
    again = partial(once_more, layer, drawn)
    if is_hooked(layer) and not hasattr(x, "placements"):
        return of_sound_inputs(layer, again, x, made)
    return of_sound_tokens(again, x, made, made)


def shows_what_is_spoilt(
    layer: Any, x: Tensor, made: Tensor, draws: bool
) -> bool:
    """Whether a token is spoilt, or what is made of it.

    A linear map shows what it was given; a bend may make a number of it. Of
    what is dealt out to ranks, which must all go alike, only that is asked
    which is the same on all.
    """
    if hasattr(x, "placements"):
        given = of_this_rank(x)
        return is_spoilt(given) or overflows(given)
    bends = draws or getattr(layer, "_forward_hooks", None)
    tell = (made, x) if bends else (made,)
    return any(map(is_spoilt, tell))


def is_hooked(layer: object) -> TypeGuard[nn.Module]:
    """Whether hooks may put something else in place of what it is given."""
    if not isinstance(layer, nn.Module):
        return False
    return bool(layer._forward_pre_hooks or _global_forward_pre_hooks)


def spared(layer: object, x: Tensor) -> Tensor:
    """What a layer is given: x, or a copy of it for a module that may work in
    place. PyTorch's linear maps, norms and tables do not.

    Raises:
        ValueError: if a weight of a module is on meta, and x is not.

    >>> x = torch.tensor([-1.0])
    >>> torch.nn.ReLU(inplace=True)(spared(torch.nn.ReLU(), x)), x
    (tensor([0.]), tensor([-1.]))
    """
    if not isinstance(layer, nn.Module):
        return x
    check_filled(layer, x)
    return x if type(layer) in MODEST else x.clone()


def unheard(
    make: Callable[[Tensor], Tensor], x: Tensor, axes: tuple[int, ...]
) -> Tensor:
    """What somebody's function makes of tokens; to its weights one that is
    spoilt passes nothing back, if the others are made without it.

    Args:
        make: may mix tokens, have weights, and draw random numbers.
        x: tokens, (..., n, d).
        axes: what is spoilt as one: (-1,) for a token alone, (-2, -1) for a
            sequence, whose tokens are mixed.

    >>> w = torch.ones(1, 1, requires_grad=True)
    >>> x = torch.tensor([[2.0], [torch.nan]])
    >>> torch.autograd.grad(unheard(w.mul, x, (-1,))[0, 0], w)
    (tensor([[2.]]),)
    """
    drawn = before_drawing(x)
    made = make(x)
    if not (made.requires_grad and (is_spoilt(made) or is_spoilt(x))):
        return made
    spoilt = (~y.isfinite().all(dim=axes, keepdim=True) for y in (x, made))
    lost = torch.logical_or(*spoilt)
    sound = x.masked_fill(lost, 0)
    if -2 in axes and not once_more(make, drawn, sound.detach()).requires_grad:
        return made  # it has no weights: what it passes back goes to x
    known = once_more(make, drawn, sound)
    if (torch.isclose(known, made) | lost).all():
        return torch.where(lost, made.detach(), known)
    return made


def a_token_each(
    layer: object, made: Any, x: Tensor, width: int | None = None
) -> Tensor:
    """What a layer made, if it is a token for each of x; somebody may have
    put another in its place. One for all would be broadcast, and nothing said.

    Raises:
        TypeError: if it is no tensor.
        ValueError: if it is more or fewer, or of other features than wanted.

    >>> a_token_each(torch.nn.Identity(), torch.ones(1, 3), torch.ones(2, 5))
    Traceback (most recent call last):
    ValueError: a layer must make a token of each token, (..., n, any number \
of features), but of (2, 5) it made (1, 3): it is Identity()
    """
    fits = isinstance(made, Tensor) and made.shape[:-1] == x.shape[:-1]
    fits = fits and made.is_floating_point() and made.ndim == x.ndim
    if fits and (width is None or made.shape[-1] == width):
        return made
    check_floats("what a layer makes", made)
    features = "any number of" if width is None else width
    raise ValueError(
        f"a layer must make a token of each token, (..., n, {features} "
        f"features), but of {tuple(x.shape)} it made {tuple(made.shape)}: "
        f"it is {shown(layer)}"
    )


def of_each_token(norm: nn.Module) -> Callable[[Tensor], Any]:
    """A normalisation, to whose weights a spoilt token passes nothing back:
    one of PyTorch's, which is known to make each token of that one alone.
    """
    theirs = isinstance(norm, nn.LayerNorm | nn.RMSNorm)
    if theirs and len(norm.normalized_shape) == 1:
        return partial(normed, norm)
    return norm


def normed(norm: nn.Module, x: Tensor) -> Any:
    """The same of tokens, one of which may be so large that its squares have
    no sum: PyTorch's makes zeros of it, and NaN on the way back of all.
    """
    made = projected(norm, x, draws=False)
    if not (made.requires_grad and overflows(x)):
        return made
    wide = x.detach().to(torch.promote_types(x.dtype, torch.float32))
    squares = wide.square().sum(dim=-1, keepdim=True)
    return of_sound_tokens(norm, x, made, squares)


def felt_where_it_reaches(
    network: Callable[[Tensor], Tensor],
    x: Tensor,
    reached: Callable[[Tensor, Tensor], Tensor],
    *,
    draws: bool = True,
) -> Tensor:
    """What a network makes of tokens that it mixes; on the way back, one that
    is spoilt is not felt where it does not reach, and nothing where it does.

    Args:
        network: makes of (batch, n, d) as many tokens.
        x: the tokens.
        reached: where a spoilt one reaches, (batch, n, 1), by where they are
            and by what was made.
        draws: whether it may draw random numbers.

    >>> x = torch.tensor([[[1.0], [torch.nan]]])
    >>> w = torch.ones((), requires_grad=True)
    >>> made = felt_where_it_reaches(w.mul, x, lambda lost, made: lost)
    >>> torch.autograd.grad(made[0, 0], w)
    (tensor(1.),)
    """
    drawn = before_drawing(x) if draws else None
    made = network(x)
    # In bfloat16, PyTorch's convolutions feel it on the way there, too.
    either_way = made.requires_grad or (not draws and made.element_size() < 4)
    if not (either_way and is_spoilt(x)):
        return made
    lost = ~x.isfinite().all(dim=-1, keepdim=True)
    known = once_more(network, drawn, x.masked_fill(lost, 0))
    return torch.where(reached(lost, made), made.detach(), known)


def before_drawing(x: Tensor) -> Tensor | None:
    """What PyTorch's generator is before a layer draws, if it may be called
    again.
    """
    again = torch.is_grad_enabled() and can_look(x)
    return torch.get_rng_state() if again else None


def once_more(
    layer: Callable[[Tensor], Tensor], drawn: Tensor | None, x: Tensor
) -> Tensor:
    """What a layer makes, drawing what it drew the first time."""
    if drawn is not None:
        torch.set_rng_state(drawn)
    return layer(x)


def drawing_once(x: Tensor, *ways: Callable[..., Any]) -> list[partial]:
    """The same functions, all of which draw what the first that is called
    draws: called once more, they leave PyTorch's generator as it was.

    >>> first, again = drawing_once(torch.ones(1), torch.rand, torch.rand)
    >>> first(1).equal(again(1)), first(1).equal(torch.rand(1))
    (True, False)
    """
    before: list[Tensor] = []

    def draw(way: Callable[..., Any], *given: Any, **options: Any) -> Any:
        if not before:
            before.extend([torch.get_rng_state()] if can_look(x) else [])
            return way(*given, **options)
        after = torch.get_rng_state()
        torch.set_rng_state(before[0])
        try:
            return way(*given, **options)
        finally:
            torch.set_rng_state(after)

    return [partial(draw, way) for way in ways]


def of_sound_tokens(
    layer: Callable[[Tensor], Tensor], x: Tensor, made: Tensor, told: Tensor
) -> Tensor:
    """What a layer made of tokens, x; on the way back those are not felt that
    are spoilt themselves, or in what is told of each.
    """
    sound = x.isfinite().all(dim=-1, keepdim=True)
    if hasattr(x, "placements"):  # the same on all ranks, that must go alike
        if not all(place.is_replicate() for place in x.placements):
            return made
        here = sound.to_local() & on_all_ranks(told, x.device_mesh)
        given = x.masked_fill(~as_given(here, x), 0)
    else:
        here = sound & told.isfinite().all(dim=-1, keepdim=True)
        # Not all alike: a norm of no eps would make NaN of those.
        other = torch.arange(1, 1 + x.shape[-1], device=x.device)
        given = torch.where(here, x, other.to(x.dtype))
    if here.all():
        return made
    return torch.where(here, layer(given), made.detach())


def of_sound_inputs(
    layer: nn.Module,
    again: Callable[[Tensor], Tensor],
    x: Tensor,
    made: Tensor,
) -> Tensor:
    """The same where hooks change what a layer is given: a token is sound if
    it is so behind the last of them.
    """
    sound: list[Tensor] = []
    here = threading.get_ident()
    fits = made.isfinite().all(dim=-1, keepdim=True)

    def spare(_: nn.Module, given: tuple[Any, ...]) -> tuple[Any, ...]:
        if threading.get_ident() != here:  # whose tokens are others
            return given
        entered = of_this_rank(given[0])
        sound.append(fits & entered.isfinite().all(dim=-1, keepdim=True))
        entered = entered.masked_fill(~sound[-1], 0)
        return (as_given(entered, given[0]), *given[1:])

    # Before them, what they mend is left to them.
    lost = ~(fits | x.isfinite().all(dim=-1, keepdim=True))
    last = layer.register_forward_pre_hook(spare)
    try:
        known = again(x.masked_fill(lost, 0))
    finally:
        last.remove()
    return torch.where(sound[-1], known, made.detach())


def on_all_ranks(made: Tensor, mesh: Any) -> Tensor:
    """Which tokens are made into numbers by the features of every rank."""
    from torch import distributed as dist

    sound = made.isfinite().all(dim=-1, keepdim=True).to(torch.uint8)
    dist.all_reduce(sound, dist.ReduceOp.MIN, group=mesh.get_group())
    return sound.to(torch.bool)


def of_this_rank(x: Any) -> Tensor:
    """The features that are here, of what several ranks share out."""
    return x.to_local() if hasattr(x, "to_local") else x


def as_given(x: Tensor, given: Any) -> Tensor:
    """Features of this rank's heads, as they were handed over."""
    if not hasattr(given, "to_local"):
        return x
    from torch.distributed.tensor import DTensor

    return DTensor.from_local(x, given.device_mesh, given.placements)
