"""Ways to look at a layer whose numbers nobody knows.

Each changes an input, and sees which outputs move.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from selfattn.doctor.copying import copy_of
from selfattn.doctor.kinds.layer.parts import by_word
from selfattn.doctor.kinds.layer.taught import untaught
from selfattn.doctor.patient import Patient
from selfattn.doctor.probes import Inputs, numbers

Answer = Callable[..., Any]
# By how much an output must move for a change to count: what is hidden moves
# nothing in the package's layers, and what is seen some hundredths.
MOVES = 1e-5
# A step along which a layer's output is a straight line but for a hundredth,
# and how much, of a whole, must be otherwise to count.
STEP, OTHERWISE = 1e-2, 0.2
TEXTS = 24  # that differ in what is padding alone
# Steps that are far smaller than those of the next type with fewer digits.
SMALL = {torch.float32: 2e-4, torch.float64: 1e-9}


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
        columns.append(~(moved.abs().amax(dim=(0, 2)) <= MOVES))  # or is NaN
    return torch.stack(columns, dim=-1)


def which_sequences_meet(answer: Answer, inputs: Inputs) -> Tensor:
    """Which sequences' outputs move, as each sequence changes in its turn."""
    name = source(inputs)
    before, columns = put(answer, inputs), []
    for b in range(len(inputs[name])):
        changed = inputs[name].clone()
        changed[b] = 1 - changed[b]
        moved = put(answer, {**inputs, name: changed}) - before
        columns.append(~(moved.abs().amax(dim=(1, 2)) <= MOVES))
    return torch.stack(columns, dim=-1)


def who_sees_what_is_real(answer: Answer, inputs: Inputs) -> Tensor:
    """Which outputs at real tokens move, (batch, n_q, n_k), beside padding.

    What a padded query sees is nobody's business.
    """
    name, real = source(inputs), inputs["padding"]
    before, columns = put(answer, inputs), []
    for j in range(real.shape[-1]):
        changed = inputs[name].clone()
        changed[:, j] = 1 - changed[:, j]
        moved = put(answer, {**inputs, name: changed}) - before
        columns.append(~(moved.abs().amax(dim=-1) <= MOVES))  # or is NaN
    seen = torch.stack(columns, dim=-1)
    return seen & real[:, :, None] if name == "x" else seen


def heeds_padding(answer: Answer, inputs: Inputs) -> Tensor:
    """Whether outputs at real tokens are others than without any padding."""
    real = inputs["padding"]
    none = put(answer, {**inputs, "padding": torch.ones_like(real)})
    moved = put(answer, inputs) - none
    seen = moved[real] if source(inputs) == "x" else moved
    return ~(seen.abs().max() <= MOVES)  # or is NaN


def padding_is_heard_less(answer: Answer, inputs: Inputs) -> Tensor:
    """Whether padding moves a real token in fewer directions than others do.

    So it is where it is hidden, and where its values are wiped out, so that
    each head moves along one line; but not where it is heard more faintly.
    """
    name, real = source(inputs), inputs["padding"][:1].expand(TEXTS, -1)
    one = {n: x[:1].expand(TEXTS, *x.shape[1:]) for n, x in inputs.items()}
    other = numbers(*one[name].shape, seed=8).to(one[name])
    one[name] = torch.where(real[..., None], one[name], other)
    i = int(inputs["padding"][0].float().argmax()) if name == "x" else 0

    def ways(padding: Tensor) -> int:
        said = put(answer, {**one, "padding": padding})[:, i].detach()
        sizes = torch.linalg.svdvals((said - said[:1]).double())
        return int((sizes > max(MOVES, 1e-3 * float(sizes[0]))).sum())

    return torch.tensor(ways(real) < ways(torch.ones_like(real)))


def what_padding_moves(answer: Answer, inputs: Inputs) -> Tensor:
    """Whether outputs at real tokens move as the padded ones change."""
    name = source(inputs)
    padded = ~inputs["padding"]
    changed = inputs[name].clone()
    changed[padded] = 1 - 3 * changed[padded]
    moved = put(answer, {**inputs, name: changed}) - put(answer, inputs)
    real = moved[~padded] if name == "x" else moved
    return ~(real.abs().max() <= MOVES)  # NaN is no number to stay at


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


def slopes(answer: Answer, inputs: Inputs) -> Tensor:
    """Whether gradients are those of its own numbers, as these move.

    Who cuts something out of the graph, or writes over what it needs, learns
    in another direction than the one in which his output grows.
    """
    name = source(inputs)
    x = inputs[name].clone().requires_grad_()
    output = put(answer, {**inputs, name: x})
    weigh = numbers(*output.shape, seed=9)
    if not output.requires_grad:
        return torch.tensor(True)  # of which `what_learns` tells
    gradient = torch.autograd.grad((output * weigh).sum(), x)[0]
    ways = [numbers(*x.shape, seed=30 + i) for i in range(6)]
    said = torch.stack([(gradient * way).sum() for way in ways])
    moved = torch.stack(
        [
            ((after - before) * weigh).sum() / (2 * STEP)
            for way in ways
            for before, after in [
                [
                    put(answer, {**inputs, name: inputs[name] + by * way})
                    for by in (-STEP, STEP)
                ]
            ]
        ]
    ).detach()
    return ~((said - moved).norm() > OTHERWISE * moved.norm())


def learns(answer: Answer, inputs: Inputs) -> Tensor:
    """Whether all numbers of a module that move its output learn from it."""
    module = answer.thing if isinstance(answer, Patient) else None
    if not isinstance(answer, Patient) or not isinstance(module, nn.Module):
        return torch.tensor(True)
    if not isinstance(output := put(answer, inputs), Tensor) or (
        output.shape[:-1] != inputs["x"].shape[:-1]
    ):
        return torch.tensor(True)  # of which others tell
    texts = [inputs[name] for name in ("x", "context") if name in inputs]
    widths = [text.shape[-1] for text in texts]
    return torch.tensor(not untaught(module, answer, *widths))


def steps(answer: Answer, inputs: Inputs) -> Tensor:
    """Whether twice as small a step makes twice as small a difference.

    What is rounded on the way, to fewer digits than its type has, moves by
    leaps, or not at all.
    """
    name = source(inputs)
    by = SMALL[inputs[name].dtype] * numbers(*inputs[name].shape, seed=40)
    before, once, again = (
        put(answer, {**inputs, name: inputs[name] + times * by}).detach()
        for times in (0, 1, 2)
    )
    one, two = once - before, again - once
    if not bool(two.isfinite().all()):
        return torch.tensor(True)  # of which others tell
    return (two - one).norm() < OTHERWISE * one.norm()


def twice(answer: Callable[..., Any], inputs: Inputs) -> Tensor:
    """Whether two calls with one input give one output."""
    first, second = (answer(*inputs.values()) for _ in range(2))
    return torch.tensor(torch.equal(first, second))


def matters(part: str) -> Callable[[Answer, Inputs], Tensor]:
    """Whether the output moves as the matrix of a part does.

    ``part`` is one of q, k, v and out. Of what has no such matrix, it does.
    """

    def experiment(answer: Answer, inputs: Inputs) -> Tensor:
        if not isinstance(answer, Patient):
            return torch.tensor(True)
        told = dict(answer.facts.get("projections") or {})
        named = next(
            (name for name in maps(answer.thing, told) if name[0] == part),
            None,
        )
        if named is None:
            return torch.tensor(True)
        other = copy_of(answer.thing)
        weight = dict(other.named_parameters())[named[1]]
        with torch.no_grad():
            weight += numbers(*weight.shape, seed=3) / 2
        pair = put(answer, inputs), put(replace(answer, thing=other), inputs)
        return ~((pair[0] - pair[1]).abs().max() <= MOVES)  # or is NaN

    return experiment


def maps(thing: Any, told: dict[str, str]) -> Iterator[tuple[str, str]]:
    """The part and the name of each matrix that makes one part alone."""
    names = {id(x): name for name, x in thing.named_parameters()}
    for part, affine in by_word(thing, told).items():
        if part in ("q", "k", "v", "out") and id(affine.whole[0]) in names:
            yield part, names[id(affine.whole[0])]


def sums(answer: Callable[..., Any], inputs: Inputs) -> Tensor:
    """What the rows of the weights that are returned sum to."""
    weights = answer(*inputs.values(), whole=True)[1]
    return weights.sum(dim=-1).flatten().mean().round(decimals=3)
