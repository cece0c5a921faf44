"""In which axes a layer is handed its texts, and what comes back is read."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from selfattn.doctor.exercise import UnusableError
from selfattn.doctor.kinds.text_layouts import (
    PICTURES,
    laid_out,
    read_back,
)
from selfattn.doctor.patient import Facts


def arranged(
    inputs: list[Tensor | None], names: Facts, layout: str
) -> tuple[list[Tensor], dict[str, Tensor]]:
    """X and the context in their layout: by their place, and by names."""
    # A picture may be told of in a text.
    beside = "BND" if layout in PICTURES else layout
    both = zip(inputs, (layout, beside), strict=True)
    given = [laid_out(x, axes) for x, axes in both if x is not None]
    if names.get("x") and (len(given) == 1 or names["context"]):
        pair = (names["x"], names["context"])
        return [], dict(zip(pair, given, strict=False))
    if names["qkv"]:
        three = [given[0], given[-1], given[-1]]
        return [], dict(zip(names["qkv"], three, strict=True))
    if len(given) == 2 and names["context"]:
        return given[:1], {names["context"]: given[1]}
    return given, {}


def read(value: Any, layout: str, whole: bool, sizes: tuple[int, int]) -> Any:
    """The output, (batch, n, d_model), with the weights if asked for.

    What comes beside it are weights if it is a table of queries and keys, of
    these ``sizes``: no keys and values to be kept, nor scores, of which some
    are below 0.
    """
    rest: tuple[Any, ...] = ()
    if isinstance(value, Mapping):  # of names, in the order of a tuple
        value = tuple(value.values())
    if isinstance(value, tuple) and value:
        value, *others = value
        rest = tuple(others)
    if isinstance(value, Tensor):
        value = read_back(value, layout)
    if not whole:
        return value
    tables = [
        w
        for w in rest
        if isinstance(w, Tensor)
        and w.ndim > 2
        and sorted(w.shape[-2:]) == sorted(sizes)
        and not bool((w < 0).any())
    ]
    if not tables:
        raise UnusableError("it returns no weights")
    return value, tables[0]
