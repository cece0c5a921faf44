"""Maps that are numbers of any name, of whom it was told which they are.

They are a layer's own, or those of a small module in it; and they may have an
axis for heads, as kernels have in Flax and Keras.
"""

import re
from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from selfattn.doctor.kinds.layer.affine import Affine, as_matrix

THREE = 3  # axes: one is for heads
OF_A_MAP = re.compile("^(w|weight|kernel)_|_?(w|weight|kernel)$", re.I)
OF_A_SHIFT = re.compile("^(b|bias)_|_?(b|bias)$", re.I)


def by_told(
    module: nn.Module,
    told: dict[str, str],
    n_heads: int,
    known: Mapping[str, Affine],
) -> dict[str, Affine]:
    """The maps that were told by their names, and that are numbers.

    What is ``known`` of the same ones by their names may tell of a shift.
    """
    named, found = dict(module.named_modules()), {}
    for part, name in told.items():
        holder, _, last = name.rpartition(".")
        held: Any = named.get(holder)
        x, made = getattr(held, last, None), None
        own = held is module or isinstance(held, nn.ParameterDict)
        if isinstance(x, nn.Module):
            made = of_module(x, part, n_heads)
        elif own and isinstance(x, Tensor) and x.ndim in (2, THREE):
            made = with_shift(held, last, of_numbers(x, last, part, n_heads))
        if made is not None:
            found[part] = with_known(made, known.get(part))
    return found


def with_known(made: Affine, same: Affine | None) -> Affine:
    """A map with the shift that was known, if it is of the same numbers."""
    if same is None or same.b is None or same.whole[0] is not made.whole[0]:
        return made
    fits = same.b.numel() == made.W.shape[1]
    return same._replace(W=made.W) if fits else made


def of_module(module: nn.Module, part: str, n_heads: int) -> Affine | None:
    """The map of a module that has one kernel, and perhaps a shift.

    None of one that is a map without an axis for heads, or no such thing.
    """
    if as_matrix(module, getattr(module, "weight", None)) is not None:
        return None
    own = [*module.parameters(recurse=False)]
    kernels = [x for x in own if x.ndim == THREE]
    if len(kernels) != 1 or len(own) > 2:
        return None
    made = of_numbers(kernels[0], "", part, n_heads)
    rest = [x for x in own if x is not kernels[0]]
    return shifted(made, rest[0]) if rest else made


def with_shift(module: nn.Module, name: str, made: Affine) -> Affine:
    """A map with the numbers that are called as it is, but as a shift."""
    stem = OF_A_MAP.sub("", name)
    for other, x in module.named_parameters(recurse=False):
        same = other != name and OF_A_SHIFT.sub("", other) == stem
        if same and x.numel() == made.W.shape[1]:
            return shifted(made, x)
    return made


def shifted(made: Affine, shift: Tensor) -> Affine:
    """A map and the numbers that it adds."""
    return Affine(made.W, shift.flatten(), (*made.whole, shift))


def of_numbers(x: Tensor, name: str, part: str, n_heads: int) -> Affine:
    """The map that some numbers are."""
    if x.ndim == THREE:
        return Affine(of_heads(x, part, n_heads), None, (x,))
    return Affine(x.mT if is_turned(name, part, x) else x, None, (x,))


def is_turned(name: str, part: str | None, x: Tensor) -> bool:
    """Whether a bare matrix is of (out, in), by its name or by its shape.

    What holds queries, keys and values at once is longer that way.
    """
    n_out, n_in = x.shape
    several = part in ("qkv", "kv") and n_out > n_in
    return name.endswith("proj_weight") or several


def of_heads(x: Tensor, part: str, n_heads: int) -> Tensor:
    """A kernel with an axis for heads as a matrix: it comes first or second.

    On the way out that is (heads, features of one, features of all).
    """
    if part == "out":
        return x.flatten(0, 1)
    first = x.shape[0] == n_heads
    return (x.transpose(0, 1) if first else x).flatten(1)
