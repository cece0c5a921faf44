"""Parts that lie in a block's own forward, called as it runs by itself.

A block that works out its attention line by line has no part that could be
called. But as it is followed, it is seen which of its numbers go into a
sublayer and which come out. So it can be run with others in the place of the
first, up to the second; and that is the sublayer, whatever it is written in.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any, NamedTuple

from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from selfattn.doctor.kinds.blocks.flow import Flow, Place
from selfattn.doctor.kinds.blocks.paths import (
    Stage,
    attends,
    entries,
    looks_across,
    stages,
)
from selfattn.doctor.kinds.blocks.sums import Said, Sum, each_once

Call = Callable[..., Any]
ONCE = 1.0


class Reached(BaseException):
    """A block has come to where what is asked for comes out.

    It is no error, and nobody on the way is to catch it as one.
    """

    def __init__(self, said: Tensor):
        """Take along what it is."""
        super().__init__()
        self.said = said


class Seen(NamedTuple):
    """A sublayer in a block's forward, from where it enters to its end."""

    enters: Place | None  # None: it is given the block's input
    ends: Place
    said: Said
    across: bool  # whether it looks at a context
    attends: bool
    turned: bool  # whether tokens come before the batch

    @property
    def own(self) -> list[nn.Parameter]:
        """What it has learnt."""
        made = each_once(self.said, made_of)
        return [one.part for one in made if one.kind == "weights"]


class Counted(TorchFunctionMode):
    """Runs a block with other numbers at one place, up to another."""

    def __init__(self, enters: Place | None, ends: Place, given: Tensor):
        """Begin to count."""
        super().__init__()
        self.enters, self.ends, self.given = enters, ends, given
        self.count: Counter[Any] = Counter()

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """Call a function of PyTorch's, and see whether that is the place."""
        return self.passed(func, func(*args, **(kwargs or {})))

    def passed(self, what: Any, said: Any) -> Any:
        """What goes on from a place: what came out there, or other numbers.

        Raises:
            Reached: at the end.
        """
        place = Place(what, self.count[what])
        self.count[what] += 1
        if place == self.enters:
            said = self.given
        if place == self.ends:
            raise Reached(said)
        return said


def ran(
    block: nn.Module,
    call: Call,
    seen: Seen,
    texts: tuple[Tensor, ...],
    **masks: Tensor,
) -> Tensor:
    """What a sublayer says of other numbers.

    Args:
        block: in which it lies.
        call: calls that with x, perhaps a context, and masks.
        seen: the sublayer.
        texts: the numbers it is given, and perhaps a context.
        masks: what the block is given besides.
    """
    given, *others = texts
    inner = given.transpose(0, 1) if seen.turned else given
    by = Counted(seen.enters, seen.ends, inner)
    named = {part: name for name, part in block.named_modules()}
    with ExitStack() as stack:
        for place in (seen.enters, seen.ends):
            if place and isinstance(place.what, str):
                hook = block.get_submodule(place.what).register_forward_hook(
                    lambda part, args, said: by.passed(named[part], said)
                )
                stack.callback(hook.remove)
        begins = block.register_forward_pre_hook(
            lambda part, args: by.count.clear()  # it may be called again
        )
        stack.callback(begins.remove)
        try:
            with by:
                call(given, *others, **masks)
        except Reached as reached:
            said = reached.said
            return said.transpose(0, 1) if seen.turned else said
    raise ValueError("the block does not come to where its sublayer ends")


def found(flow: Flow) -> list[Seen] | None:
    """The sublayers of a block, in their order; None if that is unclear."""
    path = stages(flow)
    if path is None:
        return None
    listed = [
        sublayer(flow, said, path)
        for stage in reversed(path)
        for said in stage.beside
    ]
    known = [one for one in listed if one is not None]
    return known if len(known) == len(listed) else None


def sublayer(flow: Flow, said: Said, path: list[Stage]) -> Seen | None:
    """Where a sublayer enters and ends; None if that is at several places."""
    inner = said.reads[0].moving if said.kind == "norm" else [said]
    sources = {key(one): one for one in entries(said)}
    if len(sources) != 1 or len(inner) != 1:
        return None
    [source] = sources.values()
    [bare] = inner
    ends = last_of(flow, bare)
    enters, known = entrance(flow, source)
    if ends is None or not known:
        return None
    place, shape = ends
    turned = shape[:2] != flow.x.shape[:2]
    across, mixes = looks_across(said), attends(said, flow)
    return Seen(enters, place, bare, across, mixes, turned)


def made_of(said: Said) -> Iterator[Said]:
    """What goes into something, weights and all, but for what is before it."""
    for read in said.reads:
        if not read.of_the_path:
            for value in (read, *read.factors):
                yield from value.terms


def key(value: Sum) -> frozenset[Said]:
    """What tells one sum on the path from another."""
    return frozenset(value.moving)


def entrance(flow: Flow, source: Sum) -> tuple[Place | None, bool]:
    """Where a sum comes out; and whether that is known."""
    if source.moving == [flow.x]:
        return None, True
    wanted = key(source)
    for place, value, _ in flow.places:
        if key(value) == wanted:
            return place, True
    return None, False


def last_of(flow: Flow, said: Said) -> tuple[Place, tuple[int, ...]] | None:
    """The last place at which that and nothing else comes out, as a text."""
    texts = [flow.x.shape[:2], flow.x.shape[1::-1]]
    found = [
        (place, shape)
        for place, value, shape in flow.places
        if value.moving == [said]
        and value.terms[said] == ONCE
        and shape[:2] in texts
    ]
    return found[-1] if found else None
