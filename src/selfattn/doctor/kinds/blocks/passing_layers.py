"""Sublayers that lie in a block's forward, each as a layer by itself.

A layer is asked by its maps, which it names. So those that such a sublayer
uses are its parts here, under the words in the names that they have.
"""

import re
from collections import Counter
from collections.abc import Callable
from typing import Any

from torch import Tensor, nn

from selfattn.doctor.kinds.blocks.in_passing import Seen, ran
from selfattn.doctor.kinds.blocks.methods import take_numbers
from selfattn.doctor.kinds.layer.words import SAYS_NOTHING, part_called
from selfattn.doctor.probes import numbers

LENGTH = 6  # of a context at which nobody looks
Caller = Callable[[nn.Module], Callable[..., Any]]


def with_context(d_context: int | None, *texts: Tensor) -> tuple[Tensor, ...]:
    """Texts, and a context at which nobody looks, if one is missing."""
    if d_context is None or len(texts) > 1:
        return texts
    return *texts, numbers(len(texts[0]), LENGTH, d_context).to(texts[0])


class Passing(nn.Module):
    """A sublayer of a block's forward, as a layer with what it has learnt.

    The block is held as no part of it. What is done to its numbers is done to
    the block's, which are the same.
    """

    def __init__(
        self,
        block: nn.Module,
        call: Caller,
        seen: Seen,
        d_context: int | None = None,
        mask: str = "",
    ):
        """Hold the block, and what the sublayer has learnt.

        Args:
            block: in which the sublayer lies.
            call: makes of a block what calls it with x.
            seen: the sublayer.
            d_context: how wide a context is that the block takes.
            mask: "mask" or "padding", which the block takes and hands on.
        """
        super().__init__()
        self.held, self.call, self.seen = (block,), call, seen
        self.beside, self.masked = (d_context,), mask
        take_numbers(self, block)
        for name, one in called(uses(block, seen)).items():
            if isinstance(one, nn.Module):
                self.add_module(name, one)
            else:
                self.register_parameter(name, one)

    def _apply(self, fn: Any, recurse: bool = True) -> "Passing":
        """Do something to all numbers of the block."""
        self.held[0]._apply(fn, recurse)
        return self

    def ran(self, *texts: Tensor, mask: Tensor | None = None) -> Tensor:
        """What the sublayer says."""
        (block,), (d_context,) = self.held, self.beside
        texts = with_context(d_context, *texts)
        masks = {} if mask is None else {self.masked: mask}
        return ran(block, self.call(block), self.seen, texts, **masks)

    def forward(self, x: Tensor) -> Tensor:
        """What the sublayer says of tokens."""
        return self.ran(x)


class Masked(Passing):
    """One that is handed the block's mask."""

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """What the sublayer says of tokens that may be hidden."""
        return self.ran(x, mask=mask)


class Across(Passing):
    """One that looks at another text."""

    def forward(  # type: ignore[override]
        self, x: Tensor, context: Tensor
    ) -> Tensor:
        """What the sublayer says of tokens and a context."""
        return self.ran(x, context)


class AcrossMasked(Passing):
    """One that looks at another text, and is handed the block's mask."""

    def forward(  # type: ignore[override]
        self, x: Tensor, context: Tensor, mask: Tensor | None = None
    ) -> Tensor:
        """What it says of tokens and of what is seen of a context."""
        return self.ran(x, context, mask=mask)


def uses(block: nn.Module, seen: Seen) -> dict[str, Any]:
    """The maps and numbers that a sublayer has learnt, by their names."""
    own = {id(weights) for weights in seen.own}
    found: dict[str, Any] = {}
    for name, part in block.named_modules():
        mine = [*part.parameters(recurse=False)]
        if name and mine and all(id(x) in own for x in mine):
            found[name] = part
            own -= {id(x) for x in mine}
    for name, weights in block.named_parameters():
        if id(weights) in own:
            found[name] = weights
    return found


def called(found: dict[str, Any]) -> dict[str, Any]:
    """The same, by the word in each name that tells of a part of a layer.

    Where none does, or the same does twice, by the whole name.
    """
    words = {name: word_in(name) for name in found}
    often = Counter(words.values())
    return {
        words[name]
        if words[name] and often[words[name]] == 1
        else name.replace(".", "_"): one
        for name, one in found.items()
    }


def word_in(name: str) -> str:
    """The word in a name that tells which part of a layer it is; or "".

    >>> [word_in(name) for name in ("cross_kv", "q1", "body.to_out", "gate")]
    ['kv', 'q', 'to_out', '']
    """
    last = name.rpartition(".")[-1]
    if part_called(last) is not None:
        return last
    words = re.split(r"[_.\d]+", re.sub("([a-z])([A-Z])", r"\1_\2", name))
    for word in reversed(words):
        if word and word.lower() not in SAYS_NOTHING and part_called(word):
            return word
    return ""
