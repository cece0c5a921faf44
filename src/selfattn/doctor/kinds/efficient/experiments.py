"""Ways to look at a mechanism whose numbers nobody knows.

What its weights sum to, or which outputs move when an input is changed.
"""

import contextlib
import math
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from selfattn.doctor.patient import Patient
from selfattn.doctor.probes import Inputs, numbers

Answer = Callable[..., Any]
Function = TypeVar("Function", bound=Callable[..., object])
N = 2048  # where a table is far longer than all else
# By how much an output must move, relatively, for a change to count. In the
# package's mechanisms what is hidden moves nothing, and what is seen moves an
# output by 0.02 or more; who sums in another order may be off by rounding.
MOVES = 1e-4
MANY = (4, 8), (32,)  # texts and heads, of which some do a few at a time
FEW = 256  # tokens of each
# How far apart, relatively, the outputs of two loud queries must lie: random
# features blur them, but who looks at no query gives the same to both.
APART = 0.01
# Operations after which who has made no table is believed to make none: who
# makes one makes it at once, or row by row, and loops over small tiles in
# Python would take minutes.
ENOUGH = 50_000


def put(answer: Answer, inputs: Inputs, **changed: Tensor) -> Tensor:
    """The output for some inputs, of which a few are others."""
    given = {**inputs, **changed}
    qkv = [given.pop(name) for name in "qkv"]
    output: Tensor = answer(*qkv, **given)
    return output.detach()


def moved(before: Tensor, after: Tensor) -> Tensor:
    """Which outputs are other ones, (…, n_q)."""
    gap = (before - after).abs() / (1 + before.abs())
    return gap.amax(dim=-1) > MOVES


def sums(answer: Answer, inputs: Inputs) -> Tensor:
    """What the weights of each query sum to: its output, if each value is 1.

    More than ten is ten: what is not divided may be of any size.
    """
    output = put(answer, inputs, v=torch.ones_like(inputs["v"]))[..., 0]
    return output.clamp(-10, 10)


def told_apart(answer: Answer, inputs: Inputs) -> Tensor:
    """Whether other queries get other outputs."""
    output = put(answer, inputs)
    other = put(answer, inputs, q=inputs["q"].flip(-1))
    return (output - other).norm() > APART * output.norm()


def who_is_seen(answer: Answer, inputs: Inputs) -> Tensor:
    """Of which values something comes out at all, (n_k,)."""
    before, columns = put(answer, inputs), []
    for j in range(inputs["v"].shape[-2]):
        v = inputs["v"].clone()
        v[..., j, :] += 50
        columns.append(moved(before, put(answer, inputs, v=v)).any())
    return torch.stack(columns)


def itself(answer: Answer, inputs: Inputs) -> Tensor:
    """Whether each output moves with its own value, (n,)."""
    before, found = put(answer, inputs), []
    for i in range(inputs["v"].shape[-2]):
        v = inputs["v"].clone()
        v[..., i, :] += 50
        after = put(answer, inputs, v=v)
        found.append(moved(before, after)[..., i].all())
    return torch.stack(found)


def later(answer: Answer, inputs: Inputs, name: str) -> Tensor:
    """Whether earlier outputs move as one input becomes loud later on."""
    half = inputs[name].shape[-2] // 2
    x = inputs[name].clone()
    x[..., half:, :] = 5 * x[..., half:, :].flip(-1)
    after = put(answer, inputs, **{name: x})
    return moved(put(answer, inputs), after)[..., :half].any()


def across(answer: Answer, inputs: Inputs) -> Tensor:
    """Whether other sequences move when the first is another, and loud."""
    loud = {name: inputs[name].clone() for name in "qkv"}
    for x in loud.values():
        x[0] = 5 * x[0].flip(-1)
    after = put(answer, inputs, **loud)
    return moved(put(answer, inputs), after)[1:].any()


def of_real(output: Tensor, inputs: Inputs) -> Tensor:
    """The outputs of tokens that are no padding: (…, features)."""
    return output.transpose(1, 2)[inputs["padding"]]


def what_moves(
    answer: Answer, inputs: Inputs, name: str, padded: bool
) -> Tensor:
    """Whether outputs of real tokens move with padded, or real, inputs."""
    which = inputs["padding"] != padded
    x = inputs[name].masked_fill(which[:, None, :, None], 2.0)
    pair = put(answer, inputs), put(answer, inputs, **{name: x})
    return moved(*(of_real(output, inputs) for output in pair)).any()


def sums_of_real(answer: Answer, inputs: Inputs) -> Tensor:
    """What the weights of each real token sum to."""
    output = put(answer, inputs, v=torch.ones_like(inputs["v"]))
    return of_real(output, inputs)[..., 0].clamp(-10, 10)


def form(answer: Answer, inputs: Inputs) -> Tensor:
    """Zeros of the shape and type of the output, and NaN where it has NaN."""
    output = put(answer, inputs)
    return torch.where(output.isfinite(), torch.zeros_like(output), torch.nan)


def learned(answer: Answer, inputs: Inputs) -> Tensor:
    """Through which of q, k and v something could be learned."""
    leaves = [inputs[name].clone().requires_grad_() for name in "qkv"]
    output = answer(*leaves)
    if not output.requires_grad:
        return torch.zeros(3, dtype=torch.bool)
    weighted = (output * output.detach().flip(-1)).sum()
    grads = torch.autograd.grad(weighted, leaves, allow_unused=True)
    reached = [g is not None and bool(g.abs().sum() > 0) for g in grads]
    return torch.tensor(reached)


def measured(function: Function) -> Function:
    """Let `makes_no_table` measure a mistake, as if it were a patient."""
    vars(function)["measured"] = True
    return function


def is_measured(function: object) -> bool:
    """Whether `makes_no_table` measures it: a patient, or such a mistake."""
    return isinstance(function, Patient) or hasattr(function, "measured")


class EnoughError(BaseException):
    """So much was done that what follows is taken for more of the same."""


class Largest(TorchDispatchMode):
    """Notes the longest tensor that anything makes, until enough is seen.

    Raises:
        EnoughError: after `ENOUGH` operations; no patient's business, and so
            no `Exception`.
    """

    numel = 0
    many = 0

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """No: to skip the compiler PyTorch imports it, which takes seconds."""
        return False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """Do what is to be done, and look at what it makes."""
        self.many += 1
        if self.many > ENOUGH:
            raise EnoughError
        made = func(*args, **(kwargs or {}))
        for x in made if isinstance(made, (tuple, list)) else (made,):
            if isinstance(x, Tensor):
                self.numel = max(self.numel, x.numel())
        return made


def makes_no_table(answer: Callable[..., Any], inputs: Inputs) -> Tensor:
    """Whether no tensor is longer than half of the table of scores.

    Of one text that is the table of all its tokens. Who does a few heads or
    texts at a time never holds the tables of all.
    """
    if not is_measured(answer):
        return torch.tensor(True)  # a reference need not save work
    if longest(answer, inputs) <= N * N / 2:
        return torch.tensor(True)
    return torch.tensor(any(map(partial(shares_out, answer), MANY)))


def longest(answer: Answer, inputs: Inputs) -> int:
    """The length of the longest tensor that it makes on the way."""
    with contextlib.suppress(EnoughError), Largest() as largest:
        answer(*inputs.values())
    return largest.numel


def shares_out(answer: Answer, front: tuple[int, ...]) -> bool:
    """Whether it holds the scores of no more than half of many texts."""
    qkv = [numbers(*front, FEW, 8, seed=seed) for seed in range(3)]
    try:
        most = longest(answer, dict(zip("qkv", qkv, strict=True)))
    except Exception:  # it takes no such axes
        return False
    return most <= math.prod(front) * FEW * FEW / 2
