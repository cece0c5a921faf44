"""Modules that attend from a sequence to itself, or to another one."""

from functools import lru_cache, partial
from typing import Any

from torch import nn

from selfattn.doctor.exercise import Exercise
from selfattn.doctor.kind import Fact, Kind, UnclearError
from selfattn.doctor.kinds import layer_probes, layers_called
from selfattn.doctor.kinds.layers_called import MEANINGS
from selfattn.doctor.kinds.projections import (
    HEADS,
    WIDTHS,
    by_word,
    number,
    projections,
)
from selfattn.doctor.patient import Facts

FACTS = {
    "layout": Fact(
        "the axes of x",
        {"BND": "batch, tokens, features", "NBD": "tokens, batch, features"},
    ),
    "causal": Fact(
        "whether it hides later tokens, without being told to",
        {False: "it sees them", True: "it hides them"},
    ),
    "mask": Fact("what a mask says", MEANINGS),
    "mask_axes": Fact(
        "which axes a mask has",
        {
            "NN": "queries, keys",
            "BNN": "batch, queries, keys",
            "B1NN": "batch, 1, queries, keys",
        },
    ),
    "padding": Fact("what a mask for padding says", MEANINGS),
    "packed": Fact(
        "how one matrix holds queries, keys and values",
        {"by part": "all queries first", "by head": "a head after the other"},
    ),
    "n_heads": Fact("how many heads it has"),
    "names": Fact("its names for x, context, mask, padding, causal"),
    "projections": Fact("its names for q, k, v, out, qkv or kv"),
    "call": Fact("what else it is to be called with, as a dict"),
    "make": Fact("what its class is to be called with, as a dict"),
    "empty_row": Fact(
        "what a query gets that may see nothing",
        {
            "zeros": "zeros",
            "nan": "NaN",
            "average": "the average of all values",
            "everything": "what it would get without a mask",
        },
        tried=False,
    ),
}


def look(thing: Any, said: Facts, cross: bool = False) -> dict[str, Any]:
    """Its arguments, its number of heads, and how it holds what it learns."""
    module = layers_called.instance(thing, said)
    names = layers_called.looked_up(module.forward, said)
    seen: dict[str, Any] = {"names": names, "try": {}}
    needs = {"mask": "mask", "padding": "padding", "causal": "causal"}
    lacks = {
        need: "it has no argument for it"
        for need, name in needs.items()
        if names[name] is None
    }
    if "mask" not in lacks:
        lacks.pop("padding", None)
    else:
        seen |= {"mask": "keep", "mask_axes": "NN"}
    if names["padding"] is None:
        seen["padding"] = "keep"
    first = getattr(module, "batch_first", None)
    if isinstance(first, bool):
        seen["layout"] = "BND" if first else "NBD"
    if "qkv" not in by_word(module, dict(said.get("projections") or {})):
        seen["packed"] = "by part"
    if cross:
        seen["causal"] = False
    return seen | {"lacks": lacks, **count_heads(module, said)}


def count_heads(module: nn.Module, said: Facts) -> dict[str, Any]:
    """The number of heads, or the numbers to try."""
    found = by_word(module, dict(said.get("projections") or {}))
    if "q" in found:
        d = found["q"].W.shape[-1]
    elif "qkv" in found:
        d = found["qkv"].W.shape[-1] // 3
    else:
        raise UnclearError(
            "I do not recognise its projections. Say which they are: "
            "projections={'q': …, 'k': …, 'v': …, 'out': …}, each with the "
            "name of a submodule."
        )
    n_heads, width = number(module, HEADS), number(module, WIDTHS)
    if n_heads is None and width is not None and d % width == 0:
        n_heads = d // width
    if n_heads is not None:
        return {"n_heads": n_heads}
    divisors = [n for n in (1, 2, 3, 4, 6, 8, 12, 16) if d % n == 0]
    return {"try": {"n_heads": divisors}}


def reference(thing: Any, facts: Facts, cross: bool = False) -> Exercise:
    """Attention by heads with the module's own projections."""
    said = tuple(dict(facts.get("projections") or {}).items())
    return of_module(
        thing, facts["n_heads"], facts["packed"], said, facts["causal"], cross
    )


@lru_cache(maxsize=8)  # so that what its bank does is not done again
def of_module(
    module: nn.Module,
    n_heads: int,
    packed: str,
    said: tuple[tuple[str, str], ...],
    causal: bool,
    cross: bool,
) -> Exercise:
    """The reference of one module, in one way to read it."""
    parts = projections(module, n_heads, packed, dict(said))
    if parts is None:
        raise UnclearError("Its heads do not divide its projections.")
    return layer_probes.exercise(parts, causal=causal, cross=cross)


KIND = Kind(
    "self-attention",
    asks="a module that attends from a sequence to itself",
    exercise=reference,
    facts=FACTS,
    look=look,
    prepare=layers_called.copied,
    adapt=layers_called.adapt,
)
CROSS = Kind(
    "cross-attention",
    asks="a module that attends from a sequence to another",
    exercise=partial(reference, cross=True),
    facts=FACTS,
    look=partial(look, cross=True),
    prepare=layers_called.copied,
    adapt=layers_called.adapt,
)
