"""Valid arguments for a callable, made from what its signature says.

Shapes come from jaxtyping's annotations, an axis of one name having one size
everywhere; numbers from the names of parameters. What cannot be told from
there has a recipe (`recipes`); without one, the callable is not tried, and
that is an error.
"""

import inspect
import types
import typing
from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

import torch
from torch import Tensor

from hostile.callables import Target

Sizes = dict[str, int]

# Of axes that a module's parameters fix; the others are drawn.
WIDTHS = {
    **{"d": 4, "d_v": 3, "d_model": 8, "d_context": 8, "width": 8},
    **{"d_q": 4, "d_k": 6, "d_out": 8, "h": 2, "n_heads": 2},
    **{"channels": 1, "height": 6, "rows": 4, "names": 6},
}
LENGTHS = ("batch", "n_q", "n_k", "n", "n_tokens", "down", "right")
# What a parameter of this name is given, where its type is a number.
NUMBERS: dict[str, int | float] = {
    **{"n": 5, "n_q": 4, "n_k": 6, "m": 3, "size": 3, "seed": 1, "k": 2},
    **{"d": 4, "d_v": 3, "d_model": 8, "d_context": 8, "d_hidden": 5},
    **{"d_q": 4, "d_k": 6, "d_ff": 12, "n_heads": 2, "n_kv_heads": 1},
    **{"window": 3, "prefix": 2, "stride": 3, "cycle": 3, "p": 0.7},
    **{"n_tokens": 11, "n_source": 11, "n_target": 7, "n_classes": 3},
    **{"n_labels": 3, "n_layers": 2, "kernel": 3, "max_distance": 6},
    **{"max_length": 16, "n_new": 3, "n_features": 8, "n_channels": 1},
    **{"n_segments": 2, "n_buckets": 8, "style": 1, "n_rounds": 2},
    **{"distance": 5},
}


class NoRecipeError(Exception):
    """An argument that cannot be made from the signature alone."""


class Call(NamedTuple):
    """A callable with its arguments, and the module whose method it is."""

    target: Target
    given: dict[str, Any]
    module: torch.nn.Module | None

    def run(self) -> Any:
        """Call it."""
        first = () if self.module is None else (self.module,)
        return self.target.call(*first, **self.given)

    def having(self, **changed: Any) -> "Call":
        """The same with other arguments."""
        return self._replace(given={**self.given, **changed})

    def tensors(self) -> dict[str, Tensor]:
        """Those of the arguments that are tensors."""
        return {n: x for n, x in self.given.items() if isinstance(x, Tensor)}

    def floats(self) -> dict[str, Tensor]:
        """Those of them that are floating-point."""
        return {
            n: x for n, x in self.tensors().items() if x.is_floating_point()
        }


def draw_sizes(rng: Random) -> Sizes:
    """A size for each axis: small, and no two lengths alike."""
    lengths = rng.sample(range(3, 11), len(LENGTHS))
    return {**WIDTHS, **dict(zip(LENGTHS, lengths, strict=True))}


def arguments(
    target: Target, recipe: dict[str, Callable[..., Any]], sizes: Sizes
) -> dict[str, Any]:
    """A value for each parameter that needs one.

    Raises:
        NoRecipeError: for the first that cannot be made.
    """
    given = {}
    for name, parameter in target.parameters.items():
        if name in recipe:
            given[name] = recipe[name](sizes)
        elif parameter.default is inspect.Parameter.empty:
            given[name] = value(name, target.hints.get(name), sizes)
    return given


def value(name: str, hint: Any, sizes: Sizes) -> Any:
    """Something of this type, for a parameter of this name."""
    for one in alternatives(hint):
        if hasattr(one, "dim_str"):
            return tensor(name, one, sizes)
        if one in (int, float) and name in NUMBERS:
            return NUMBERS[name]
        if one is bool:
            return True
        if typing.get_origin(one) is typing.Literal:
            words = typing.get_args(one)
            return words[sum(sizes.values()) % len(words)]
    raise NoRecipeError(f"{name}: {hint}")


def alternatives(hint: Any) -> tuple[Any, ...]:
    """The types of a union, or the one that it is."""
    if isinstance(hint, types.UnionType) or typing.get_origin(hint) in (
        typing.Union,
    ):
        return typing.get_args(hint)
    return (hint,)


def kind_of(hint: Any) -> str:
    """Which of jaxtyping's kinds a tensor is: float, int or bool."""
    dtypes = hint.dtypes
    if "bool" in dtypes:
        return "bool"
    return "float" if "float32" in dtypes else "int"


def shape_of(dims: str, sizes: Sizes) -> tuple[int, ...]:
    """A shape in which each axis has its size.

    >>> shape_of("*#batch n_q d 10", {"batch": 2, "n_q": 3, "d": 4})
    (2, 3, 4, 10)
    """
    shape = []
    for axis in dims.split():
        name = axis.lstrip("*#")
        if name == "...":
            shape += [sizes["batch"], sizes["n"]]
        elif name == "shape":
            shape += [sizes["n_q"], sizes["n_k"]]
        elif name.isdecimal():
            shape.append(int(name))
        elif name in sizes:
            shape.append(sizes[name])
        else:
            raise NoRecipeError(f"an axis {name} of no known size")
    return tuple(shape)


def tensor(name: str, hint: Any, sizes: Sizes) -> Tensor:
    """Random numbers of the kind and shape that an annotation names."""
    dims = "n_q n_k" if name in ("mask", "bias") else hint.dim_str
    shape = shape_of(dims, sizes)
    kind = kind_of(hint)
    if kind == "float":
        return torch.randn(shape, dtype=torch.float64)
    if kind == "bool":
        return torch.rand(shape, dtype=torch.float64) < 0.7
    return torch.randint(0, 3, shape, dtype=torch.int64)
