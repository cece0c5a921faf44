"""What holds of every block, whatever its formula.

For those that join other parts than the usual ones, or join them otherwise:
two halves of a network round the attention, a gate, all side by side. None of
these probes knows a number that should come out; each changes an input, and
sees which outputs move.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from selfattn.doctor.deviations.number_types import TYPES, of_types
from selfattn.doctor.exercise import Exercise
from selfattn.doctor.kind import UNFOUND, UnclearError
from selfattn.doctor.kinds import one_length, trial_calls
from selfattn.doctor.kinds.blocks import blanks, passing_on
from selfattn.doctor.kinds.blocks.hearing import (
    of_itself,
    of_x,
    slopes_of_x,
    steps_of_x,
    what_is_real_is_heard,
    who_is_heard,
)
from selfattn.doctor.kinds.blocks.stand_ins import (
    Way,
    mistakes,
    stand_in,
)
from selfattn.doctor.kinds.layer.experiments import (
    Answer,
    form,
    twice,
    which_sequences_meet,
    who_sees_whom,
)
from selfattn.doctor.kinds.layer.norming import is_norm
from selfattn.doctor.kinds.layer.probes import loud, padded_in_front
from selfattn.doctor.probes import Inputs, Probe, Sizes, numbers
from selfattn.masks import causal_mask

OPTIONAL = {
    "mask": "a mask",
    "padding": "a mask for padding",
    "length": "a text of another length",
    **TYPES,
}
N, N_K = 7, 6
MAY_IT_SEE = (
    "It sees later tokens, and nobody said whether it may. Say causal=True or "
    "causal=False."
)
ITS_SIGHT = "a token sees what it may see"
ALL_IS_SEEN = "all of the context is seen"


def table(sizes: Sizes) -> Tensor:
    """A mask, (n, n_k), by which all see every second token and no other.

    Were it another for each, they would tell each other what they saw.
    """
    n_k = sizes.get("n_k", sizes["n"])
    return (torch.arange(n_k) % 2 == 0).expand(sizes["n"], -1)


class Wide(NamedTuple):
    """How wide the texts are that a block takes."""

    d_model: int
    d_context: int | None = None  # it takes no context
    only: int | None = None  # how many tokens they have; None: any number


def described_as(
    d_model: int, d_context: int | None, only: int | None = None
) -> tuple[dict[str, Any], dict[str, int]]:
    """What a block of these widths is given, and how large that is."""
    x = {"x": "batch n d_model"}
    sizes = {"n": only or N, "n_k": only or N, "d_model": d_model}
    if d_context is not None:
        x["context"] = "batch n_k d_context"
        sizes |= {"n_k": only or N_K, "d_context": d_context}
    return x, sizes


def fixed(only: int | None) -> tuple[str, ...]:
    """The axes that are never made shorter."""
    return ("d_model", "d_context", *(("n", "n_k") if only else ()))


def sights(d_model: int, d_context: int | None) -> tuple[Probe, ...]:
    """The probes of which token a token sees, of which a mask lets it see,
    and of what padding moves.
    """
    x, sizes = described_as(d_model, d_context)
    token = Probe(ITS_SIGHT, x, sizes, experiment=of_itself)
    every = (token, *with_masks(x, sizes))
    return tuple(replace(one, fixed=fixed(None)) for one in every)


def probes(
    d_model: int,
    d_context: int | None,
    order: str | None,
    only: int | None = None,
) -> tuple[Probe, ...]:
    """All probes of a block of these widths; None: it takes no context."""
    x, sizes = described_as(d_model, d_context, only)
    asked = partial(Probe, inputs=x, sizes=sizes)
    found = [
        asked(ITS_SIGHT, experiment=of_itself),
        asked("each text is for itself", experiment=which_sequences_meet),
        asked("the output has x's shape", experiment=form),
        asked("loud tokens are no harder", change=loud, experiment=form),
        asked("in evaluation, two calls agree", experiment=twice),
        asked("something is learned", experiment=of_x),
        *of_what_is_computed(asked),
        *with_masks(x, sizes),
        Probe(
            "beside padding, what is real is heard",
            {**x, "padding": padded_in_front},
            sizes,
            needs=("padding",),
            experiment=what_is_real_is_heard,
        ),
    ]
    found += passing_on.probes(x, sizes, order)
    if d_context is not None:
        found.append(asked(ALL_IS_SEEN, experiment=who_sees_whom))
    found += of_types(x, sizes, fixed(only))
    return tuple(replace(probe, fixed=fixed(only)) for probe in found)


def of_what_is_computed(asked: Callable[..., Probe]) -> list[Probe]:
    """The probes of how it is computed, on the way there and back."""
    return [
        asked(
            "gradients are those of its numbers",
            experiment=slopes_of_x,
            tells="detached",
        ),
        asked(
            "float32 is computed in float32",
            experiment=steps_of_x,
            tells="computed in half precision",
        ),
    ]


def with_masks(x: dict[str, Any], sizes: dict[str, int]) -> list[Probe]:
    """The probes on which something is hidden."""
    masked, padded = {**x, "mask": table}, {**x, "padding": padded_in_front}
    return [
        Probe(
            "the mask is kept",
            masked,
            sizes,
            needs=("mask",),
            experiment=who_sees_whom,
        ),
        Probe(
            "padding is not seen",
            padded,
            sizes,
            needs=("padding",),
            experiment=who_is_heard,
        ),
    ]


@lru_cache(maxsize=16)  # one object, so that its reference is one, too
def of_widths(
    kind: str,
    d_model: int,
    d_context: int | None,
    only: int | None,
    causal: bool | str | None,
    order: str | None = "free",
    how: str | None = None,
) -> Exercise:
    """What a block of these widths is held to.

    ``causal`` is "own" of one that sees whom nobody could tell. ``order`` is
    where its norms stand, "clear" if not on the path of x; None if nobody
    told, and "free" if that path is its own affair. ``how`` one tells which
    its parts are, if they were looked for and not found. ``only`` is how many
    tokens its texts have, if it takes no other number.
    """
    across = d_context is not None
    usual = Way(causal_mask if causal else None)
    asked = probes(d_model, d_context, order, only)
    right = partial(stand_in, usual)
    first = asked[0].make()
    return Exercise(
        kind,
        asks="a block of its own formula, which sees what it may see",
        solution=right,
        probes=asked if causal != "own" else asked[1:],
        by_name=("mask", "padding"),
        mistakes=tuple(mistakes(usual, across)),
        optional={**OPTIONAL, **({} if how is None else unfound(how))},
        deviations=tuple(
            replace(one, answer=right) for one in passing_on.KNOWN
        ),
        signs=partial(sign, inputs=first, order=order, causal=causal),
    )


def unfound(how: str) -> dict[str, str]:
    """What is not asked of one whose parts were not found."""
    return {UNFOUND: f"how it joins its parts. {how}".removesuffix(". ")}


def sign(
    answer: Answer, inputs: Inputs, order: str | None, causal: Any
) -> str:
    """The name of what is to be seen of a block that is wrong, if any is."""
    blank = blanks.sign(answer, inputs, of_itself) if causal else ""
    return blank or passing_on.sign(answer, inputs, order)


def widths(
    block: nn.Module, call: Callable[..., object], across: bool
) -> Wide:
    """The widths of x and of the context with which it can be called.

    Raises:
        UnclearError: if it takes none that its parts would take.
    """
    normed = [
        p.numel()
        for m in block.modules()
        if is_norm(m)
        for p in m.parameters()
        if p.numel() > 1  # a single number is for any width
    ][:1]
    taken = [
        m.in_features for m in block.modules() if isinstance(m, nn.Linear)
    ]
    streams = [2 * n for n in normed]  # two lie side by side in x
    maps = [p.shape for p in block.parameters() if p.ndim > 1]
    others = [n for shape in maps for n in shape]  # of whatever holds them
    sizes = list(dict.fromkeys([*normed, *taken, *streams, *others]))
    for d_model in sizes:
        for d_context in [d_model, *sizes] if across else [None]:
            wide = Wide(d_model, d_context, one_length.of(call))
            given = texts(*wide).values()
            if isinstance(trial_calls.outcome(call, *given), Tensor):
                return wide
    raise UnclearError("I cannot see how wide the block is.")


def texts(
    d_model: int, d_context: int | None = None, only: int | None = None
) -> Inputs:
    """Texts of these widths: x, and perhaps a context."""
    given = {"x": numbers(2, only or N, d_model, seed=1)}
    if d_context is not None:
        given["context"] = numbers(2, only or N_K, d_context, seed=2)
    return given
