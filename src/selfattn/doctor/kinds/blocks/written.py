"""A block held to a formula that was written out, as a function."""

import inspect
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from selfattn.doctor.copying import copy_of
from selfattn.doctor.exercise import (
    Exercise,
    Mistake,
    UnusableError,
    mistake_as,
)
from selfattn.doctor.exercises.multihead import attention as multihead
from selfattn.doctor.kinds import trial_calls
from selfattn.doctor.kinds.blocks import properties
from selfattn.doctor.kinds.blocks.decoder import mistakes as decoder
from selfattn.doctor.kinds.blocks.encoder import mistakes as encoder
from selfattn.doctor.kinds.blocks.probes import of_loud_tokens, round_the_end
from selfattn.doctor.kinds.layer.experiments import put, source
from selfattn.doctor.kinds.layer.probes import padded_in_front
from selfattn.doctor.kinds.layer.written import checked
from selfattn.doctor.kinds.layer.written_mistakes import (
    OTHER_STEPS,
    by_other_steps,
    turned,
)
from selfattn.doctor.patient import Facts
from selfattn.doctor.probes import Inputs, Probe, Sizes

Call = Callable[..., Any]


def of(name: str, thing: Any, facts: Facts, adapt: Call) -> Exercise:
    """What the formula makes of the same weights and the same texts.

    Args:
        name: the kind of the block.
        thing: the block.
        facts: what is known of it; its formula is a function.
        adapt: calls a block by its facts, or what stands for it.
    """
    call = adapt(thing, facts)
    slow = adapt(Said(thing, facts["formula"]), facts)
    across = "context" in inspect.signature(call).parameters
    # Who left a part out may take a context of any width: the formula tells.
    wide = trial_calls.outcome(properties.widths, thing, slow, across)
    wide = wide or properties.widths(thing, call, across)
    formula = in_float64(thing, facts, adapt)
    return Exercise(
        name,
        asks="what your formula makes of the same weights and texts",
        solution=formula,
        probes=tuple(probes(wide)),
        by_name=("mask", "padding"),
        mistakes=tuple(mistakes(formula, across)),
        optional=properties.OPTIONAL,
    )


class Said:
    """What stands for a block: called as it is, it says what is right."""

    def __init__(self, block: Any, says: Call):
        """Keep both; its arguments are the block's."""
        self.block, self.says, self.forward = block, says, block.forward

    def __call__(self, *given: Any, **named: Any) -> Any:
        """What the block should give."""
        return self.says(self.block, *given, **named)


def in_float64(thing: Any, facts: Facts, adapt: Call) -> Call:
    """A formula with a block's weights, called as all blocks are.

    It is computed in float64, unless it can be in its own type alone.
    """
    says = facts["formula"]
    wide = adapt(Said(copy_of(thing).double(), says), facts)
    narrow = adapt(Said(thing, says), facts)

    def formula(x: Tensor, *others: Tensor, **more: Any) -> Tensor:
        try:
            given = [one.double() for one in (x, *others)]
            value = wide(*given, **more)
        except UnusableError:
            raise
        except Exception:
            value = narrow(x, *others, **more)
        return checked(value, x).to(x.dtype)

    return formula


def probes(wide: properties.Wide) -> Iterator[Probe]:
    """The inputs on which a block and its formula are compared."""
    x, sizes = properties.described_as(*wide)
    masked = {**x, "mask": round_the_rows}
    padded = {**x, "padding": padded_in_front}
    single = Probe("so is a single token", x, {**sizes, "n": 1})
    for one in (
        Probe("it is what your formula makes it", x, sizes),
        Probe("its gradients are your formula's", x, sizes, gradient=True),
        *([] if wide.only else [single]),
        Probe("and a text alone", x, {**sizes, "batch": 1}),
        of_loud_tokens(x, sizes),
        Probe("under a mask, too", masked, sizes, needs=("mask",)),
        Probe(
            "beside padding, so is what is real",
            padded,
            sizes,
            needs=("padding",),
            experiment=of_what_is_real,
        ),
    ):
        yield replace(one, fixed=properties.fixed(wide.only))


def round_the_rows(sizes: Sizes) -> Tensor:
    """A mask, (n, n_k): each sees the next two, round the end."""
    return round_the_end(sizes["n"], sizes.get("n_k", sizes["n"]))


def of_what_is_real(answer: Call, inputs: Inputs) -> Tensor:
    """The outputs, but for those of padding, which are nobody's business."""
    output = put(answer, inputs)
    return output[inputs["padding"]] if source(inputs) == "x" else output


def mistakes(formula: Call, across: bool) -> Iterator[Mistake]:
    """What is done wrong with a block's masks, or in its attention's steps."""
    unused, inverted = encoder.mask_not_passed_on, encoder.mask_upside_down
    if across:
        unused = decoder.mask_of_the_context_not_passed_on
        inverted = decoder.mask_of_the_context_upside_down
    for known, change in (
        (unused, lambda **more: {}),
        (inverted, turned(torch.logical_not, "mask", "padding")),
    ):
        yield mistake_as(known)(heard_otherwise(formula, change))
    for known, other in OTHER_STEPS:
        yield mistake_as(known)(by_other_steps(formula, other))
    yield mistake_as(multihead.detached)(
        lambda *texts, **more: formula(*texts, **more).detach()
    )


def heard_otherwise(formula: Call, change: Call) -> Call:
    """The formula under other masks than it is called with."""
    return lambda *texts, **masks: formula(*texts, **change(**masks))
