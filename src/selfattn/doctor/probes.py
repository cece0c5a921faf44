"""Probes: inputs on which a wrong answer cannot look right.

Every axis of an input has another prime for its size, so that no two can be
mixed up unnoticed; values are small, so that softmax does not saturate; and
they are multiples of a quarter, so that what a report prints is exactly what
ran.
"""

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from selfattn.masks import causal_mask

Sizes = Mapping[str, int]
Inputs = dict[str, Any]

SIZES = {
    "batch": 2,
    "heads": 3,
    "n": 5,  # of one sequence, in inputs that have neither n_q nor n_k
    "n_q": 5,
    "n_k": 7,
    "d": 11,
    "d_v": 13,
}


SQUARE = dict.fromkeys(SIZES, 5)  # where a transposed axis goes unnoticed


@dataclass(frozen=True, eq=False)
class Probe:
    """One input, and a claim that is true of what a right answer does on it.

    An ``experiment`` calls the answer as often as it likes and returns what
    it saw, such as which outputs move with which inputs. Without one, the
    answer is called once, and its output is what is compared: to within the
    ``tolerance``, beside what numbers of its type may be off relatively, in
    either case (`engine.comparison`). Where what an experiment saw is yes or
    no, its own threshold decides instead.
    """

    claim: str  # a sentence true of right answers, without its full stop
    inputs: Mapping[str, Any]  # a recipe's name, or a function of the sizes
    sizes: Sizes = field(default_factory=dict)  # where not those of SIZES
    dtype: torch.dtype = torch.float32
    change: Callable[[Inputs], object] | None = None  # a last touch, in place
    gradient: bool = False  # compare gradients, too
    tolerance: float | None = None  # absolute; the number type's when None
    fixed: tuple[str, ...] = ()  # axes that are never made shorter
    needs: tuple[str, ...] = ()  # what not every right answer can do
    convention: str = ""  # the fact that more than one outcome is right by
    refused: bool = False  # a right answer raises, in whatever words
    tells: str = ""  # the mistake that its failing gives away, by its name
    experiment: Callable[[Callable[..., Any], Inputs], object] | None = None

    def axes(self) -> dict[str, int]:
        """The size of every axis that the inputs name."""
        shapes = " ".join(
            source
            for source in self.inputs.values()
            if isinstance(source, str)
        )
        return {
            axis: self.sizes.get(axis) or SIZES[axis]
            for axis in dict.fromkeys(shapes.split())
        }

    def make(self, **smaller: int) -> Inputs:
        """Make the inputs afresh, the same in every call.

        Args:
            smaller: axes that shall have another size than the probe's.

        Returns:
            The inputs by name. A shape such as "batch n_q d" has become a
            tensor of `numbers`; a function has been called with the sizes.

        >>> probe = Probe("rows are rows", {"x": "n d"})
        >>> probe.make()["x"].shape, probe.make(n=1)["x"].shape
        (torch.Size([5, 11]), torch.Size([1, 11]))
        """
        sizes = self.axes() | smaller
        made: Inputs = {}
        for seed, (name, source) in enumerate(self.inputs.items()):
            if isinstance(source, str):
                shape = [sizes[axis] for axis in source.split()]
                made[name] = numbers(*shape, seed=seed, dtype=self.dtype)
            else:
                made[name] = source(sizes)
        if self.change is not None:
            self.change(made)
        return made


def numbers(
    *shape: int, seed: int = 0, dtype: torch.dtype = torch.float32
) -> Tensor:
    """Multiples of a quarter from -1.5 to 1.5, none 0, the same every time.

    >>> numbers(3).tolist()
    [0.75, -0.75, -0.25]
    """
    return drawn(shape, seed, dtype).clone()


@functools.lru_cache(maxsize=2000)
def drawn(shape: tuple[int, ...], seed: int, dtype: torch.dtype) -> Tensor:
    """What `numbers` copies: nobody is handed these themselves."""
    generator = torch.Generator().manual_seed(seed)
    with torch.inference_mode(False):
        whole = torch.randint(-6, 6, shape, generator=generator, device="cpu")
        return (whole + (whole >= 0)).to(dtype) / 4


def some_keys(sizes: Sizes) -> Tensor:
    """A mask, (n_q, n_k), without an empty row, unlike its transpose."""
    i = torch.arange(sizes["n_q"])[:, None]
    j = torch.arange(sizes["n_k"])[None, :]
    return ((i + 2 * j) % 5 > 1) | (j == i % sizes["n_k"])


def all_keys(sizes: Sizes) -> Tensor:
    """A mask, (n_q, n_k), that forbids nothing."""
    return torch.ones(sizes["n_q"], sizes["n_k"], dtype=torch.bool)


def past_keys(sizes: Sizes) -> Tensor:
    """The causal mask, (n_q, n_k)."""
    return causal_mask(sizes["n_q"], sizes["n_k"])


def other_keys(sizes: Sizes) -> Tensor:
    """A mask, (1, n_k), that forbids the first key."""
    j = torch.arange(sizes["n_k"])[None, :]
    return (j > 0) | (sizes["n_k"] == 1)


def real_keys(sizes: Sizes) -> Tensor:
    """A padding mask, (batch, 1, n_k): sequence b has b + 1 padded keys."""
    padded = 1 + torch.arange(sizes["batch"])[:, None, None]
    j = torch.arange(sizes["n_k"])
    return (j < sizes["n_k"] - padded) | (j == 0)


def no_keys_for_the_first(sizes: Sizes) -> Tensor:
    """`some_keys`, but the first query may see nothing."""
    mask = some_keys(sizes)
    mask[0] = False
    return mask


def in_other_order(inputs: Inputs) -> None:
    """Give every tensor the same numbers in another order of memory."""
    for name, x in inputs.items():
        if isinstance(x, Tensor) and x.ndim > 1:
            inputs[name] = x.mT.contiguous().mT


def louder(*names: str, times: float) -> Callable[[Inputs], None]:
    """Multiply the inputs of these names."""

    def change(inputs: Inputs) -> None:
        for name in names:
            inputs[name] *= times

    return change


def loud_first_key(inputs: Inputs) -> None:
    """Make the first key so long that, seen, it would drown the others."""
    inputs["k"][..., 0, :] *= 400
