"""The probes of the kinds `self-attention` and `cross-attention`."""

import dataclasses
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from selfattn.doctor.exercise import Exercise, Mistake
from selfattn.doctor.kinds.layer.mistakes.masks import BANK, CLAIMS
from selfattn.doctor.kinds.layer.parts import Projections
from selfattn.doctor.kinds.layer.reference import Masks, Table, layer
from selfattn.doctor.probes import (
    Inputs,
    Probe,
    Sizes,
    in_other_order,
    some_keys,
)

OPTIONAL = {
    "mask": "a mask",
    "padding": "a mask for padding",
    "flag": "a causal flag",
    "length": "a context of another length",
    "weights": "its weights",
    "float16": "float16",
    "bfloat16": "bfloat16",
    "float64": "float64",
}
# What is none in a layer that is always causal, and in one that is not.
NO_MISTAKE = {True: "causal flag ignored", False: "not causal"}
CONVENTIONS = {
    "empty_row": {
        "zeros": "",
        "nan": "empty row gives nan",
        "average": "empty row gives the average",
        "everything": "ten thousand subtracted",
    }
}


def lengths(sizes: Sizes) -> dict[str, int]:
    """The numbers of queries and keys, which in self-attention are one."""
    return {
        "n_q": sizes.get("n_q", sizes.get("n", 0)),
        "n_k": sizes.get("n_k", sizes.get("n", 0)),
    }


def table(sizes: Sizes) -> Tensor:
    """A mask, (n_q, n_k), without an empty row, unlike its transpose."""
    some = some_keys(lengths(sizes))
    i = torch.arange(some.shape[0])[:, None]
    j = torch.arange(some.shape[1])
    return (some & ((j < i) | ((i + j) % 2 == 1))) | (j == i % some.shape[1])


def table_with_an_empty_row(sizes: Sizes) -> Tensor:
    """The same, but that the first query may see nothing."""
    mask = table(sizes)
    mask[0] = False
    return mask


def real(sizes: Sizes) -> Tensor:
    """Which keys are no padding, (batch, n_k): all but the last b + 1."""
    n_k = lengths(sizes)["n_k"]
    j = torch.arange(n_k)
    padded = 1 + torch.arange(sizes["batch"])[:, None]
    return (j < n_k - padded) | (j == 0)


def flag(sizes: Sizes) -> bool:
    """The causal flag, up."""
    return True


def loud_padding(inputs: Inputs) -> None:
    """What is padding shall be far larger than all else."""
    source = inputs["context"] if "context" in inputs else inputs["x"]
    source[~inputs["padding"]] *= 30


def loud(inputs: Inputs) -> None:
    """Scores in the hundreds."""
    for name in ("x", "context"):
        if name in inputs:
            inputs[name] *= 12


def cut_out(inputs: Inputs) -> None:
    """Every second feature of tensors twice as wide."""
    for name in ("x", "context"):
        if name in inputs:
            twice = inputs[name].repeat_interleave(2, dim=-1)
            inputs[name] = twice[..., ::2]


def twice(answer: Callable[..., Any], inputs: Inputs) -> Tensor:
    """Whether two calls with one input give one output."""
    first, second = (answer(*inputs.values()) for _ in range(2))
    return torch.tensor(torch.equal(first, second))


def sums(answer: Callable[..., Any], inputs: Inputs) -> Tensor:
    """What the rows of the weights that are returned sum to."""
    weights = answer(*inputs.values(), whole=True)[1]
    return weights.sum(dim=-1).flatten().mean().round(decimals=3)


def asked(x: dict[str, Any], cross: bool) -> tuple[Probe, ...]:
    """All probes, on inputs x and, for cross-attention, a context."""
    probes = [*without_masks(x), *with_masks(x)]
    if cross:
        probes.append(Probe("a longer context", x, {"n_q": 5, "n_k": 11}))
    return tuple(dataclasses.replace(p, needs=needs(p)) for p in probes)


def without_masks(x: dict[str, Any]) -> list[Probe]:
    """The probes on which everything is seen."""
    one = {"batch": 1, "n": 13, "n_q": 13, "n_k": 13}
    return [
        Probe("it is what its projections make it", x, gradient=True),
        Probe("a single token gets its own value", x, {"n": 1, "n_q": 1}),
        Probe("one sequence alone is no other", x, one),
        Probe("as many sequences as tokens", x, dict.fromkeys(one, 5)),
        Probe("the order in memory does not matter", x, change=in_other_order),
        Probe("x may be cut out of something wider", x, change=cut_out),
        Probe("scores in the hundreds", x, change=loud, tolerance=0.05),
        Probe("float64 is computed in float64", x, dtype=torch.float64),
        # Half precision is off by one step of the type in every projection.
        Probe("float16", x, dtype=torch.float16, tolerance=0.05),
        Probe("bfloat16", x, dtype=torch.bfloat16, tolerance=0.4),
        Probe("in evaluation, two calls agree", x, experiment=twice),
        Probe("rows of weights sum to one", x, experiment=sums),
    ]


def with_masks(x: dict[str, Any]) -> list[Probe]:
    """The probes on which something is hidden."""
    masked, padded = {**x, "mask": table}, {**x, "padding": real}
    return [
        Probe("a query sees what its row allows", masked, gradient=True),
        Probe(
            "float16 under a mask",
            masked,
            dtype=torch.float16,
            tolerance=0.05,
        ),
        Probe(
            "a query that may see nothing gets zeros",
            {**x, "mask": table_with_an_empty_row},
            convention="empty_row",
        ),
        Probe("padding is not seen", padded, gradient=True),
        Probe("padding is not seen, though loud", padded, change=loud_padding),
        Probe("the causal flag hides later tokens", {**x, "causal": flag}),
        Probe(
            "the flag hides them in float64",
            {**x, "causal": flag},
            dtype=torch.float64,
        ),
    ]


def needs(probe: Probe) -> tuple[str, ...]:
    """What of `OPTIONAL` a probe asks for."""
    asked = {*probe.inputs, str(probe.dtype).removeprefix("torch.")}
    asked |= {"flag"} if "causal" in probe.inputs else set()
    asked |= {"weights"} if probe.experiment is sums else set()
    asked |= {"length"} if "longer" in probe.asks else set()
    return tuple(need for need in OPTIONAL if need in asked)


WITHIN = {"x": "batch n d_model"}
ACROSS = {"x": "batch n_q d_model", "context": "batch n_k d_context"}


def probes(d_model: int, d_context: int, cross: bool) -> tuple[Probe, ...]:
    """All probes of a layer of these widths."""
    sizes = dict.fromkeys(("n", "n_q", "n_k"), 7)
    sizes |= {"d_model": d_model, "d_context": d_context}
    return tuple(
        dataclasses.replace(
            probe,
            sizes={**sizes, **probe.sizes},
            fixed=("d_model", "d_context"),
        )
        for probe in asked(ACROSS if cross else WITHIN, cross)
    )


def exercise(
    parts: Projections,
    *,
    causal: bool,
    cross: bool,
    claimed: Table | None = None,
) -> Exercise:
    """The reference, probes and mistakes for a layer of these projections.

    Args:
        parts: the projections.
        causal: whether it hides later tokens without being told to.
        cross: whether it looks at another sequence.
        claimed: of n_q and n_k, a mask that it keeps without being told to.
    """
    return Exercise(
        "cross-attention" if cross else "self-attention",
        asks=BANK.asks,
        solution=as_layer(layer, parts, causal, claimed),
        probes=probes(parts.q.W.shape[0], parts.k.W.shape[0], cross),
        by_name=("mask", "padding", "causal"),
        mistakes=known(parts, causal, claimed),
        optional=OPTIONAL,
        conventions=CONVENTIONS,
    )


def known(
    parts: Projections, causal: bool, claimed: Table | None
) -> list[Mistake]:
    """The mistakes that a layer of these projections can make."""
    none = {NO_MISTAKE[causal], *(CLAIMS if claimed is None else ())}
    return [
        dataclasses.replace(
            mistake, answer=as_layer(mistake.answer, parts, causal, claimed)
        )
        for mistake in BANK.mistakes
        if mistake.name not in none
    ]


def as_layer(
    function: Callable[..., Any],
    parts: Projections,
    always: bool,
    claimed: Table | None = None,
) -> Callable[..., Any]:
    """A function of projections as a layer that has them."""

    def called(
        x: Tensor,
        context: Tensor | None = None,
        mask: Tensor | None = None,
        padding: Tensor | None = None,
        causal: bool = False,
        whole: bool = False,
    ) -> Any:
        masks = Masks(mask, padding, causal, always, claimed)
        context = x if context is None else context
        value = function(parts, x, context, masks)
        if whole:
            return (
                value if isinstance(value, tuple) else (value, torch.ones(1))
            )
        return value[0] if isinstance(value, tuple) else value

    return called
