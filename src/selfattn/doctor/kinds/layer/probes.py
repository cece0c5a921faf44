"""The probes of the kinds `self-attention` and `cross-attention`."""

import dataclasses
from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from selfattn.doctor.kinds.layer.experiments import sums, twice
from selfattn.doctor.kinds.mask_meanings import twice_or_louder
from selfattn.doctor.probes import (
    Inputs,
    Probe,
    Sizes,
    in_other_order,
    some_keys,
)

OPTIONAL = {
    "mask": "a mask",
    "rows": "a mask with a row for each query",
    "finite": "numbers to be added to the scores",
    "padding": "a mask for padding",
    "flag": "a causal flag",
    "together": "two ways at once to hide keys",
    "length": "a text of another length",
    "weights": "its weights",
    "strides": "tokens in another order of memory",
    "float16": "float16",
    "bfloat16": "bfloat16",
    "float64": "float64",
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


def table_and_the_first(sizes: Sizes) -> Tensor:
    """The same, and the first key, which is no padding, for all queries."""
    mask = table(sizes)
    mask[:, 0] = True
    return mask


def real(sizes: Sizes) -> Tensor:
    """Which keys are no padding, (batch, n_k): all but the last b + 1."""
    n_k = lengths(sizes)["n_k"]
    j = torch.arange(n_k)
    padded = 1 + torch.arange(sizes["batch"])[:, None]
    return (j < n_k - padded) | (j == 0)


def first_keys(sizes: Sizes) -> Tensor:
    """A mask, (n_q, n_k), the same for all queries: all but the last key."""
    some = lengths(sizes)
    keys = torch.arange(some["n_k"]) < max(1, some["n_k"] - 1)
    return keys.expand(some["n_q"], -1)


def added(answer: Any, inputs: Inputs) -> Tensor:
    """Whether what a mask adds to a score counts."""
    inputs = dict(inputs)
    name = "context" if "context" in inputs else "x"
    inputs[name] = inputs[name].clone()
    inputs[name][:, 1:2] = inputs[name][:, :1]
    plain = [x for n, x in inputs.items() if n != "mask"]

    def call(mask: Tensor) -> Any:
        return answer(*plain, mask=mask)

    return twice_or_louder(answer, call, *inputs["mask"].shape)


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


def asked(x: dict[str, Any], cross: bool) -> tuple[Probe, ...]:
    """All probes, on inputs x and, for cross-attention, a context."""
    probes = [*without_masks(x), *with_masks(x), *in_two_ways(x)]
    if cross:
        longer = {"n_q": 5, "n_k": 11}
        probes.append(Probe("a longer context", x, longer, needs=("length",)))
    return tuple(probes)


def without_masks(x: dict[str, Any]) -> list[Probe]:
    """The probes on which everything is seen."""
    one = {"batch": 1, "n": 13, "n_q": 13, "n_k": 13}
    return [
        Probe("it is what its projections make it", x, gradient=True),
        Probe("a single token gets its own value", x, {"n": 1, "n_q": 1}),
        Probe("one sequence alone is no other", x, one),
        Probe("as many sequences as tokens", x, dict.fromkeys(one, 5)),
        Probe(
            "the order in memory does not matter",
            x,
            change=in_other_order,
            needs=("strides",),
        ),
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
        Probe("a mask for all queries", {**x, "mask": first_keys}),
        Probe(
            "what a mask adds to a score counts, small numbers too",
            {**x, "mask": first_keys},
            experiment=added,
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


def in_two_ways(x: dict[str, Any]) -> list[Probe]:
    """The probes on which two arguments hide something."""
    padded = {**x, "padding": real}
    joined = {**padded, "mask": table_and_the_first}
    flagged = {**padded, "causal": flag}
    return [
        Probe("mask and padding count together", joined),
        Probe("flag and padding count together", flagged),
    ]


def padded_in_front(sizes: Sizes) -> Tensor:
    """Which keys are no padding: that stands in front, as in `real` behind."""
    return real(sizes).flip(-1)


def nothing_real(sizes: Sizes) -> Tensor:
    """The same, but that the last text is all padding."""
    seen = real(sizes)
    seen[-1] = False
    return seen


def of_an_empty_text(
    d_model: int, d_context: int, cross: bool
) -> tuple[Probe, ...]:
    """What one asks of whom was told what becomes of a query without keys."""
    x = ACROSS if cross else WITHIN
    padded = {**x, "padding": nothing_real}
    behind = {**x, "padding": padded_in_front, "causal": flag}
    listed = [
        Probe(
            "in a text that is all padding, a query gets zeros",
            padded,
            convention="empty_row",
        ),
        Probe(
            "so does one, by the flag, that comes before all that is real",
            behind,
            convention="empty_row",
        ),
    ]
    return as_wide(listed, d_model, d_context)


def needs(probe: Probe) -> tuple[str, ...]:
    """What of `OPTIONAL` a probe asks for."""
    asked = {
        *probe.needs,
        *probe.inputs,
        str(probe.dtype).removeprefix("torch."),
    }
    asked |= {"flag"} if "causal" in probe.inputs else set()
    asked |= {"finite"} if probe.experiment is added else set()
    together = "padding" in asked and asked & {"mask", "flag"}
    asked |= {"together"} if together else set()
    asked |= {"rows"} if probe.inputs.get("mask") in TABLES else set()
    asked |= {"weights"} if probe.experiment is sums else set()
    return tuple(need for need in OPTIONAL if need in asked)


TABLES = (table, table_with_an_empty_row, table_and_the_first)
WITHIN = {"x": "batch n d_model"}


ACROSS = {"x": "batch n_q d_model", "context": "batch n_k d_context"}


def of_widths(d_model: int, d_context: int, cross: bool) -> tuple[Probe, ...]:
    """All probes of a layer of these widths."""
    return as_wide(
        asked(ACROSS if cross else WITHIN, cross), d_model, d_context
    )


def as_wide(
    probes: Iterable[Probe], d_model: int, d_context: int
) -> tuple[Probe, ...]:
    """The same probes for a layer of these widths."""
    sizes = dict.fromkeys(("n", "n_q", "n_k"), 7)
    sizes |= {"d_model": d_model, "d_context": d_context}
    return tuple(
        dataclasses.replace(
            probe,
            sizes={**sizes, **probe.sizes},
            fixed=("d_model", "d_context"),
            needs=needs(probe),
        )
        for probe in probes
    )
