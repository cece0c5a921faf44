"""What holds of every attention layer, whatever its formula.

For modules whose projections are not recognised, or that do more than the
plain formula: rotate, normalise, add a bias for positions. None of these
probes knows a number that should come out; each changes an input and sees
which outputs move.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from selfattn.doctor.exercise import Exercise
from selfattn.doctor.kinds.layer import probes as values
from selfattn.doctor.kinds.layer.parts import Affine, Projections
from selfattn.doctor.kinds.layer.reference import Table
from selfattn.doctor.probes import Inputs, Probe, Sizes, numbers

Answer = Callable[..., Any]
TELLING = {  # the mistakes that show without knowing the numbers
    "not causal",
    "causal flag ignored",
    "one too many",
    "not itself",
    "not itself and the first averages",
    "not itself and the first is nan",
    "from the other side",
    "batch and tokens exchanged",
    "heads attend to heads",
    "detached",
    "dropout that never ends",
    "mask ignored",
    "mask upside down",
    "mask on its side",
    "padding ignored",
    "softmax that overflows",
    "claim not kept",
    "rolled before it is padded",
}
LONGEST = {"n": 11}  # odd, and no multiple of a tile


def source(inputs: Inputs) -> str:
    """The input that is looked at."""
    return "context" if "context" in inputs else "x"


def put(answer: Answer, inputs: Inputs) -> Tensor:
    """The output for some inputs."""
    named = {n: x for n, x in inputs.items() if n not in ("x", "context")}
    plain = [x for n, x in inputs.items() if n in ("x", "context")]
    output: Tensor = answer(*plain, **named)
    return output


def who_sees_whom(answer: Answer, inputs: Inputs) -> Tensor:
    """Which outputs move, (n_q, n_k), as each token changes in its turn."""
    name = source(inputs)
    before, columns = put(answer, inputs), []
    for j in range(inputs[name].shape[-2]):
        changed = inputs[name].clone()
        changed[:, j] = 1 - changed[:, j]
        moved = put(answer, {**inputs, name: changed}) - before
        columns.append(moved.abs().amax(dim=(0, 2)) > 1e-5)
    return torch.stack(columns, dim=-1)


def which_sequences_meet(answer: Answer, inputs: Inputs) -> Tensor:
    """Which sequences' outputs move, as each sequence changes in its turn."""
    name = source(inputs)
    before, columns = put(answer, inputs), []
    for b in range(len(inputs[name])):
        changed = inputs[name].clone()
        changed[b] = 1 - changed[b]
        moved = put(answer, {**inputs, name: changed}) - before
        columns.append(moved.abs().amax(dim=(1, 2)) > 1e-5)
    return torch.stack(columns, dim=-1)


def what_padding_moves(answer: Answer, inputs: Inputs) -> Tensor:
    """Whether outputs at real tokens move as the padded ones change."""
    name = source(inputs)
    padded = ~inputs["padding"]
    changed = inputs[name].clone()
    changed[padded] = 1 - 3 * changed[padded]
    moved = put(answer, {**inputs, name: changed}) - put(answer, inputs)
    real = moved[~padded] if name == "x" else moved
    return real.abs().max() > 1e-5


def form(answer: Answer, inputs: Inputs) -> Tensor:
    """Zeros of the shape and type of the output, and NaN where it has NaN."""
    output = put(answer, inputs).detach()
    return torch.where(output.isfinite(), torch.zeros_like(output), torch.nan)


def what_learns(answer: Answer, inputs: Inputs) -> Tensor:
    """Through which inputs something could be learned."""
    name = source(inputs)
    x = inputs[name].clone().requires_grad_()
    output = put(answer, {**inputs, name: x})
    if not output.requires_grad:
        return torch.tensor(False)
    weighted = output * numbers(*output.shape, seed=9)
    return torch.autograd.grad(weighted.sum(), x)[0].abs().sum() > 0


def padded_in_front(sizes: Sizes) -> Tensor:
    """Which keys are no padding, (batch, n_k): all but the first b + 1.

    In front, because behind, a causal layer does not see them anyway.
    """
    return values.real(sizes).flip(-1)


def asked(x: dict[str, Any]) -> tuple[Probe, ...]:
    """All probes, on inputs x and, for cross-attention, a context."""
    flag = {**x, "causal": values.flag}
    masked = {**x, "mask": values.table}
    padded = {**x, "padding": padded_in_front}
    return (
        Probe("who sees whom", x, experiment=who_sees_whom),
        Probe(
            "who sees whom in a longer sequence",
            x,
            LONGEST,
            experiment=who_sees_whom,
        ),
        Probe(
            "each sequence is for itself", x, experiment=which_sequences_meet
        ),
        Probe("one token alone", x, {"n": 1, "n_q": 1}, experiment=form),
        Probe("the output has x's shape", x, experiment=form),
        Probe("float64", x, dtype=torch.float64, experiment=form),
        Probe("float16", x, dtype=torch.float16, experiment=form),
        Probe("bfloat16", x, dtype=torch.bfloat16, experiment=form),
        Probe("loud scores", x, change=values.loud, experiment=form),
        Probe("in evaluation, two calls agree", x, experiment=values.twice),
        Probe("something is learned", x, experiment=what_learns),
        Probe("rows of weights sum to one", x, experiment=values.sums),
        Probe("the mask is kept", masked, experiment=who_sees_whom),
        Probe("padding is not seen", padded, experiment=what_padding_moves),
        Probe("the flag hides later tokens", flag, experiment=who_sees_whom),
        Probe("under the flag, too, all is finite", flag, experiment=form),
    )


def exercise(
    d_model: int,
    d_context: int,
    *,
    causal: bool,
    cross: bool,
    claimed: Table | None = None,
) -> Exercise:
    """A stand-in of that width, the probes, and the mistakes that show."""
    parts = stand_in(d_model, d_context)
    whole = values.exercise(parts, causal=causal, cross=cross, claimed=claimed)
    mistakes = [m for m in whole.mistakes if m.name in TELLING]
    return dataclasses.replace(
        whole,
        probes=of_the_size_of(whole.probes[0]),
        mistakes=mistakes,
        optional={**values.OPTIONAL, "numbers": "its numbers"},
        conventions={},
    )


def of_the_size_of(other: Probe) -> tuple[Probe, ...]:
    """All probes, on inputs such as those of another probe."""
    x = {n: shape for n, shape in other.inputs.items() if type(shape) is str}
    return tuple(
        dataclasses.replace(
            probe,
            sizes={**other.sizes, **probe.sizes},
            fixed=other.fixed,
            needs=values.needs(probe),
        )
        for probe in asked(x)
    )


def stand_in(d_model: int, d_context: int) -> Projections:
    """Some projections, of one head."""

    def affine(d: int, seed: int) -> Affine:
        W = numbers(d, d_model, seed=seed) / d**0.5
        return Affine(W, None)

    widths = (d_model, d_context, d_context, d_model)
    q, k, v, out = (affine(d, seed=i) for i, d in enumerate(widths))
    n_heads = 2 if d_model % 2 == 0 else 1
    return Projections(q, k, v, out, n_heads, n_heads)
