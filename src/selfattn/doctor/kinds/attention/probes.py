"""The probes of the kind `attention`.

Those of the exercise, to which come causality as a flag, half precision, and
tables that are square: not every function takes values of another width than
keys, or more keys than queries.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from selfattn.doctor.exercises.dot_product.attention import (
    ATTENTION,
    QKV_BATCH,
    QKV_HEADS,
)
from selfattn.doctor.kinds.mask_meanings import twice_or_louder
from selfattn.doctor.probes import (
    SIZES,
    Inputs,
    Probe,
    loud_first_key,
    no_keys_for_the_first,
    other_keys,
    past_keys,
    real_keys,
    some_keys,
)
from selfattn.masks import causal_mask

OPTIONAL = {
    "mask": "a mask",
    "rows": "a mask with a row for each query",
    "texts": "a mask for each sequence",
    "finite": "numbers to be added to the scores",
    "causal": "a causal flag",
    "both": "a mask and the causal flag together",
    "width": "values of another width than keys",
    "length": "another number of keys than of queries",
    "single": "one sequence without a batch",
    "batches": "an axis for the batch",
    "heads": "axes for batch and heads",
    "float16": "float16",
    "bfloat16": "bfloat16",
    "float64": "float64",
}
ALIKE = {"n_k": SIZES["n_q"], "d_v": SIZES["d"]}
MORE_KEYS, WIDER = {"d_v": SIZES["d"]}, {"n_k": SIZES["n_q"]}


def needs(probe: Probe) -> tuple[str, ...]:
    """What a probe asks for that not every attention can do."""
    sizes = {**SIZES, **probe.sizes}
    axes = len(str(probe.inputs["q"]).split())
    asked = {
        "mask": "mask" in probe.inputs,
        "causal": "causal" in probe.inputs,
        "both": {"mask", "causal"} <= probe.inputs.keys(),
        "width": sizes["d"] != sizes["d_v"],
        "length": sizes["n_q"] != sizes["n_k"],
        "rows": "mask" in probe.inputs and differ(probe, -2),
        "texts": "mask" in probe.inputs and differ(probe, 0),
        "finite": probe.experiment is added,
        "single": axes == 2,
        "batches": axes == 3,
        "heads": axes == 4,
        str(probe.dtype).removeprefix("torch."): True,
    }
    return tuple(need for need in OPTIONAL if asked.get(need))


def differ(probe: Probe, axis: int) -> bool:
    """Whether a probe's mask is another for each query (-2) or text (0)."""
    mask: Tensor = probe.inputs["mask"]({**SIZES, **probe.sizes})
    if axis == 0 and mask.ndim < 3:
        return False
    return not bool((mask == mask.narrow(axis, 0, 1)).all())


def flag(sizes: object) -> bool:
    """The causal flag, up."""
    return True


def expanded(inputs: Inputs) -> None:
    """One key head for all query heads, of which no copies are made."""
    for name in "kv":
        inputs[name] = inputs[name][:, :1].expand_as(inputs[name])


def thirds(inputs: Inputs) -> None:
    """Numbers that no type of fewer digits holds."""
    for name in "qkv":
        inputs[name] /= 3


def added(answer: Any, inputs: Inputs) -> Tensor:
    """Whether what a mask adds to a score counts."""
    q, k, v = (inputs[name] for name in "qkv")
    k, v = (torch.cat((x[..., :1, :], x), dim=-2) for x in (k, v))

    def call(mask: Tensor) -> Any:
        return answer(q, k[..., :-1, :], v[..., :-1, :], mask=mask)

    return twice_or_louder(answer, call, q.shape[-2], k.shape[-2] - 1)


def with_itself(probe: Probe) -> Probe:
    """A probe whose mask leaves each query its own key, beside the past."""
    made: Callable[..., Tensor] = probe.inputs["mask"]

    def mask(sizes: Any) -> Tensor:
        table = made(sizes)
        own = torch.ones(sizes["n_q"], sizes["n_k"], dtype=torch.bool)
        own = own.triu(sizes["n_k"] - sizes["n_q"])
        own &= causal_mask(sizes["n_q"], sizes["n_k"])
        return table | own

    return dataclasses.replace(probe, inputs={**probe.inputs, "mask": mask})


MASK = "a query sees the keys that its row of the mask allows, and no others"
LATER = "the causal flag hides later keys"
ALL = (
    *ATTENTION.probes,
    Probe("as many keys as queries", QKV_HEADS, ALIKE, gradient=True),
    Probe("float64 is kept", QKV_BATCH, ALIKE, dtype=torch.float64),
    Probe(
        "float64 is float64 all the way",
        QKV_BATCH,
        ALIKE,
        dtype=torch.float64,
        change=thirds,
    ),
    Probe("more keys than queries", QKV_BATCH, MORE_KEYS),
    Probe("values that are wider than keys", QKV_BATCH, WIDER),
    Probe(
        f"{MASK}, of a batch",
        {**QKV_BATCH, "mask": some_keys},
        ALIKE,
        gradient=True,
    ),
    Probe(f"{MASK}, in each head", {**QKV_HEADS, "mask": some_keys}, ALIKE),
    Probe(
        "padded keys are not seen",
        {**QKV_BATCH, "mask": real_keys},
        ALIKE,
    ),
    Probe(
        "padded keys have no influence, however large",
        {**QKV_BATCH, "mask": other_keys},
        ALIKE,
        change=loud_first_key,
    ),
    Probe(
        "what a mask adds to a score counts, small numbers too",
        {**QKV_BATCH, "mask": other_keys},
        ALIKE,
        experiment=added,
    ),
    Probe(
        "in a batch, a query that may see nothing gets zeros",
        {**QKV_BATCH, "mask": no_keys_for_the_first},
        ALIKE,
        convention="empty_row",
    ),
    Probe(
        "float16 stays float16, under a mask",
        {**QKV_BATCH, "mask": some_keys},
        ALIKE,
        dtype=torch.float16,
        tolerance=0.02,  # scores near 4 are off by 0.004 in float16
    ),
    Probe(
        "bfloat16 stays bfloat16",
        QKV_BATCH,
        ALIKE,
        dtype=torch.bfloat16,
        tolerance=0.15,  # and by 0.03 in bfloat16
    ),
    Probe("keys and values may be expanded", QKV_HEADS, change=expanded),
    Probe(LATER, {**QKV_BATCH, "causal": flag}, ALIKE, gradient=True),
    Probe(f"{LATER}, in each head", {**QKV_HEADS, "causal": flag}, ALIKE),
    Probe(
        "the last query sits on the last key",
        {**QKV_BATCH, "causal": flag},
        MORE_KEYS,
        convention="alignment",
    ),
    Probe(
        "mask and causal flag count together",
        {**QKV_BATCH, "mask": past_keys, "causal": flag},
        ALIKE,
    ),
)
PROBES = tuple(dataclasses.replace(probe, needs=needs(probe)) for probe in ALL)
