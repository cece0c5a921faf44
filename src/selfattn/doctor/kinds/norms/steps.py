"""Norms in steps, and what is done otherwise at each.

Both kinds share the steps; each has its own names for what is done otherwise.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor

from selfattn.doctor.deviations.design import (
    Deviation,
    pairs,
    singles,
    unchanged,
)
from selfattn.doctor.exercise import Exercise, mistake

Dims = tuple[int, ...]
Names = Mapping[str, Any]


@dataclass(frozen=True)
class Norm:
    """How each step is done; `normed` takes them in this order."""

    wide: Callable[[Tensor], Tensor]  # of x, to be computed with
    dims: Callable[[Tensor], Dims]  # over which axes the moments run
    top: Callable[[Tensor, Dims], Tensor]  # what is divided
    spread: Callable[[Tensor, Dims], Tensor]  # its variance, say
    eps: Callable[[float], float]
    root: Callable[[Tensor, float], Tensor]  # of the spread and eps
    gain: Callable[..., Tensor]  # of (normed, gain, shift)
    shift: Callable[..., Tensor]  # of the same, with the gain


def mean(x: Tensor, dims: Dims) -> Tensor:
    """A mean that keeps its axes."""
    return x.mean(dims, keepdim=True)


def centred(x: Tensor, dims: Dims) -> Tensor:
    """What is left without the mean."""
    return x - mean(x, dims)


def variance(x: Tensor, dims: Dims) -> Tensor:
    """Mean square of what is left without the mean."""
    return mean(centred(x, dims).square(), dims)


def mean_square(x: Tensor, dims: Dims) -> Tensor:
    """Mean square of x itself."""
    return mean(x.square(), dims)


def at_least_float32(x: Tensor) -> Tensor:
    """The same number, in float32 if it was in less."""
    return x.float() if x.element_size() < 4 else x


LAYER = Norm(
    wide=at_least_float32,
    dims=lambda x: (-1,),
    top=centred,
    spread=variance,
    eps=unchanged,
    root=lambda spread, eps: (spread + eps).sqrt(),
    gain=lambda y, gain, shift: y * gain,
    shift=lambda y, gain, shift: y + shift,
)
RMS = replace(LAYER, top=unchanged, spread=mean_square)


def normed(
    norm: Norm, x: Tensor, gain: Tensor, shift: Any, eps: float
) -> Tensor:
    """A norm by its steps, in float32 at least."""
    wide = norm.wide(x)
    dims = norm.dims(wide)
    root = norm.root(norm.spread(wide, dims), norm.eps(eps))
    y = norm.top(wide, dims) / root
    return norm.shift(norm.gain(y, gain, shift), gain, shift).to(x.dtype)


@mistake
def another_eps():
    """Tokens with small numbers come out too small, or too large.

    Cause: The eps in the formula is not the one that it was told.
    Cure: Use the argument, or say which eps is meant.
    Chapter: layers
    """


@mistake
def width_without_its_root():
    """Your numbers are too large, by the root of the number of features.

    Cause: A length is divided by the number of features, and not by its
        root; or a sum of squares is divided by it twice.
    Cure: The mean of the squares, once.
    Chapter: layers
    """


@mistake
def mean_left_in_the_variance():
    """Tokens far from zero come out too small.

    Cause: The mean is taken off what is divided, but not under the root.
    Cure: (x - mean).square().mean(-1): one centred x for both.
    Chapter: layers
    """


def far(*dims: int) -> Callable[[Tensor], Dims]:
    """Axes, as far as there are so many."""
    return lambda x: tuple(d for d in dims if -x.ndim <= d < x.ndim) or (-1,)


def sample(x: Tensor, dims: Dims) -> Tensor:
    """The variance of a sample, divided by one less."""
    return x.var(dims, keepdim=True)


def shared_twice(
    of: Callable[[Tensor, Dims], Tensor],
) -> Callable[..., Tensor]:
    """A mean that is divided once more by the number of features."""
    return lambda x, dims: of(x, dims) / x.shape[-1]


def less_one(of: Callable[[Tensor, Dims], Tensor]) -> Callable[..., Tensor]:
    """A mean as of one number less."""

    def spread(x: Tensor, dims: Dims) -> Tensor:
        many = x.shape[-1]
        return of(x, dims) * many / max(many - 1, 1)

    return spread


def summed(of: Callable[[Tensor, Dims], Tensor]) -> Callable[..., Tensor]:
    """A sum over the features, not a mean."""
    return lambda x, dims: of(x, dims) * x.shape[-1]


def of_sizes(top: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The mean of |x|, of what is divided."""
    return lambda x, dims: mean(top(x, dims).abs(), dims)


def centred_over(*dims: int) -> Callable[..., Tensor]:
    """What is left without a mean over other axes than those of the rest."""
    return lambda x, usual: x - mean(x, far(*dims)(x))


def spread_over(
    of: Callable[..., Tensor], *dims: int
) -> Callable[..., Tensor]:
    """A spread over other axes than the mean's."""
    return lambda x, usual: of(x, far(*dims)(x))


def spread_of(top: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The mean square of what is divided."""
    return lambda x, dims: mean(top(x, dims).square(), dims)


def of_one_moment(norm: Norm, names: Names) -> list[Deviation]:
    """Other axes for the mean alone, or for the spread alone."""
    found = []
    for key, dims in (("tokens", (-2,)), ("sequence", (-2, -1))):
        other = spread_over(norm.spread, *dims)
        found.append(Deviation({"spread": other}, names[key]))
        if norm.top is centred:
            top = centred_over(*dims)
            found += [
                Deviation({"top": top}, names[key]),
                Deviation({"top": top, "spread": spread_of(top)}, names[key]),
            ]
    return found


def cut(step: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The same, without a way back for gradients."""
    return lambda *given: step(*given).detach()


@mistake
def detached():
    """Part of the formula learns nothing.

    Cause: .detach(), .data, or torch.no_grad() around the mean or the root.
    Cure: Leave them in the graph: a norm's gradient flows through both.
    Chapter: layers
    """


def mean_detached(x: Tensor, dims: Dims) -> Tensor:
    """What is left without a mean through which nothing flows back."""
    return x - mean(x, dims).detach()


def cuts(norm: Norm) -> list[Deviation]:
    """Steps through which no gradient flows back."""
    found = [
        Deviation({"root": cut(norm.root)}, detached),
        Deviation({"top": cut(norm.top)}, detached),
    ]
    if norm.top is centred:
        both = {"top": mean_detached, "spread": spread_of(mean_detached)}
        found += [
            Deviation({"top": mean_detached}, detached),
            Deviation(both, detached),
        ]
    return found


def axes(names: Names) -> list[Deviation]:
    """Other axes than the features."""
    listed = (
        ("tokens", far(-2)),
        ("first", lambda x: (0,)),
        ("sequence", far(-2, -1)),
        ("everything", lambda x: tuple(range(x.ndim))),
        ("tokens", far(1)),
    )
    return [Deviation({"dims": one}, names[key]) for key, one in listed]


def roots(names: Names) -> list[Deviation]:
    """Other roots, and other places of eps."""
    listed = (
        ("outside", lambda s, e: s.sqrt() + e),
        ("none", lambda s, e: s.sqrt()),
        ("no root", lambda s, e: s + e),
        ("no root", lambda s, e: s),
        ("times", lambda s, e: 1 / (s + e).sqrt()),
        ("outside", lambda s, e: (s.sqrt() + e).sqrt()),
        ("squared", lambda s, e: (s + e) ** 2),
        ("twice", lambda s, e: (s + e).sqrt() + e),
        ("times", lambda s, e: 1 / (s + e)),
    )
    return [
        Deviation({"root": one}, names[key])
        for key, one in listed
        if key in names
    ]


def spreads(norm: Norm, names: Names) -> list[Deviation]:
    """Other things under the root."""
    usual = norm.spread
    listed = (
        ("sample", less_one(usual)),
        ("sum", summed(usual)),
        ("sizes", of_sizes(norm.top)),
        ("sizes", of_sizes(unchanged)),
        ("mean square", mean_square),
        ("variance", variance),
        ("variance", sample),
    )
    twice = {"spread": shared_twice(usual)}
    return [
        *(
            Deviation({"spread": one}, names[key])
            for key, one in listed
            if key in names
        ),
        Deviation(twice, width_without_its_root),
    ]


def gains(names: Names) -> list[Deviation]:
    """What is done with what was learnt."""
    listed: tuple[tuple[str, dict[str, Any]], ...] = (
        ("no gain", {"gain": unchanged}),
        ("one plus", {"gain": lambda y, gain, shift: y * (1 + gain)}),
        ("no shift", {"shift": unchanged}),
        (
            "before",
            {
                "gain": lambda y, gain, shift: (y + shift) * gain,
                "shift": unchanged,
            },
        ),
        ("no gain", {"gain": lambda y, gain, shift: y / gain}),
        ("no shift", {"shift": lambda y, gain, shift: y - shift}),
        ("no shift", {"shift": lambda y, gain, shift: y + gain}),
    )
    return [
        Deviation(steps, names[key]) for key, steps in listed if key in names
    ]


def fixed(much: float) -> Callable[[float], float]:
    """An eps of its own, whatever it is told."""
    return lambda eps: much


def scaled(times: float) -> Callable[[float], float]:
    """An eps that is so many times larger than what it is told."""
    return lambda eps: eps * times


# What nobody would call wrong, beside a mistake.
HARMLESS = (Deviation({"wide": lambda x: x.float()}, None),)
EPS = (
    *(fixed(10.0**-n) for n in (2, 3, 5, 6, 8, 12)),
    *(scaled(times) for times in (1e3, 1e-3, 10.0, 0.1)),
)
OTHER_EPS = [
    Deviation({"eps": one}, another_eps)
    for one in (*EPS, lambda eps: eps**2, lambda eps: eps**0.5)
]


def taken_apart(
    exercise: Exercise, norm: Norm, known: Iterable[Deviation], shifts: bool
) -> dict[str, Any]:
    """What `Exercise` is told: deviations, and a second look at pairs."""
    known = list(known)

    def answer(change: Callable[[Norm], Norm]) -> Callable[..., Tensor]:
        made = change(norm)
        if shifts:
            return lambda x, gain, shift, eps: normed(
                made, x, gain, shift, eps
            )
        return lambda x, gain, eps: normed(made, x, gain, 0.0, eps)

    return {
        "deviations": (*exercise.deviations, *singles(known, answer)),
        "second": lambda: pairs(known, answer, HARMLESS, every=True),
    }
