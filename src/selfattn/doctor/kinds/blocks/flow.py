"""A block's calls of PyTorch, followed from its inputs to its output."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from selfattn.doctor.kinds import one_length
from selfattn.doctor.kinds.blocks import cores
from selfattn.doctor.kinds.blocks.operations import constant, fills, said_by
from selfattn.doctor.kinds.blocks.sums import (
    NOTHING,
    Said,
    Sum,
    added,
    of,
    scaled,
)
from selfattn.doctor.kinds.layer.norming import is_norm
from selfattn.doctor.probes import numbers

# The same numbers at other places, or in another type.
SAME = {"clone", "_to_copy", "_unsafe_view", "expand", "lift_fresh", "copy"}
# Numbers of which the input tells the shape alone.
NEW = ("new_", "zeros_like", "ones_like", "full_like", "empty_like", "rand")
MADE = {"lift_fresh", "detach"}  # what torch.tensor calls
SIGNS = {"add": 1.0, "sub": -1.0}


class Place(NamedTuple):
    """Where something comes out: of which part or function, which time."""

    what: Any  # the name of a norm, or a function of PyTorch's
    nth: int


class Flow(NamedTuple):
    """What a block made of its inputs."""

    output: Sum
    x: Said
    called: dict[nn.Module, Sum]  # whose forward ran, and what it said
    lengths: tuple[int, ...]  # how many tokens of each there were
    places: tuple[tuple[Place, Sum, tuple[int, ...]], ...]  # of texts
    averaged: tuple[str, ...] = ()  # how weights were used; "" if rightly
    others: tuple[Sum, ...] = ()  # what comes out besides

    @property
    def outputs(self) -> tuple[Sum, ...]:
        """All that comes out."""
        return (self.output, *self.others)


class Followed(TorchDispatchMode):
    """Keeps of each tensor what it is."""

    def __init__(self, block: nn.Module):
        """Begin with what the block has learnt."""
        super().__init__()
        self.known: dict[int, Sum] = {}
        self.kept: list[Any] = []  # so that no other has their place
        self.norms: list[tuple[nn.Module, Sum, Said]] = []
        self.averaged: list[str] = []
        self.others: tuple[Sum, ...] = ()
        self.clear = True
        for weights in block.parameters():
            self.note(weights, of(Said("weights", part=weights)))
        for module in block.modules():
            for thing in tree_leaves([*vars(module).values()]):
                if is_tensor(thing) and id(thing) not in self.known:
                    self.note(thing, NOTHING)

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """It compiles nothing, and to load the compiler takes seconds."""
        return False

    def note(self, tensor: Tensor, value: Sum) -> None:
        """Keep what a tensor is."""
        self.known[id(tensor)] = value
        self.kept.append(tensor)

    def sum_of(self, thing: Any) -> Sum:
        """What a tensor is; nothing known of what comes from elsewhere."""
        return self.known.get(id(thing), NOTHING)

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """Run an operation, and note what came of it."""
        kwargs = kwargs or {}
        made = func(*args, **kwargs)
        word = func._schema.name.partition("::")[2]
        inplace = word.endswith("_") and not word.startswith("_")
        if "out" in kwargs or self.from_elsewhere(word, args):
            self.clear = False
        self.averaged += cores.averaged(word, args, self.sum_of)
        tensors = [t for t in tree_leaves(made) if isinstance(t, Tensor)]
        for tensor in tensors:
            value = self.value(word.rstrip("_"), func, args, kwargs, tensor)
            if inplace:
                self.overwritten(tensor, value)
            self.note(tensor, value)
        return made

    def from_elsewhere(self, word: str, args: Any) -> bool:
        """Whether an operation gets what nothing that was seen has made.

        So it is within what maps calls over an axis, such as torch.vmap.
        """
        given = [t for t in tree_leaves(args) if is_tensor(t) and t.ndim]
        return word not in MADE and any(id(t) not in self.known for t in given)

    def normed(self, norm: nn.Module, value: Sum, said: Tensor) -> Said:
        """What a norm says of a sum: the same term if it is asked again."""
        for known, of_what, term in self.norms:
            if known is norm and of_what is value:
                return term
        term = Said("norm", (value,), norm, tuple(said.shape))
        self.norms.append((norm, value, term))
        return term

    def overwritten(self, tensor: Tensor, value: Sum) -> None:
        """Note that what shares its numbers is another, too."""
        start = tensor.untyped_storage().data_ptr()
        for other in self.kept:
            if other.untyped_storage().data_ptr() != start:
                continue
            if other.numel() == tensor.numel():
                self.known[id(other)] = value
            elif value.inputs or self.sum_of(other).inputs:
                self.clear = False  # a part of it alone is another now

    def value(
        self, word: str, func: Any, args: Any, kwargs: Any, made: Tensor
    ) -> Sum:
        """What an operation's output is."""
        given = [t for t in tree_leaves((args, kwargs)) if is_tensor(t)]
        first, other = (*args, None, None)[:2]
        if word.startswith(NEW):
            return NOTHING
        if word == "copy":
            first = args[1]
        same = word in SAME or func.is_view
        if same and is_tensor(first) and fills(first, made):
            return self.sum_of(first)
        if word in SIGNS and is_tensor(first):
            times = SIGNS[word] * kwargs.get("alpha", 1)
            return added(self.sum_of(first), self.sum_of(other), times)
        if word == "neg":
            return scaled(self.sum_of(first), -1.0)
        if word == "rsub":
            minus = scaled(self.sum_of(first), -kwargs.get("alpha", 1))
            return added(self.sum_of(other), minus)
        if word in ("mul", "div"):
            product = self.product(word, first, other)
            if product is not None:
                return product
        reads = tuple(map(self.sum_of, given))
        said = said_by(word, kwargs, given, reads, made)
        return of(said) if any(r.terms or r.factors for r in reads) else Sum()

    def product(self, word: str, one: Any, other: Any) -> Sum | None:
        """What a product is of which one factor is the same for all inputs."""
        left, right = self.sum_of(one), self.sum_of(other)
        if right.inputs and not left.inputs and word == "mul":
            one, other, left, right = other, one, right, left
        if right.inputs or not left.inputs:
            return None
        number = constant(other) if not (right.terms or right.factors) else 0
        if word == "div" and number:
            number = 1 / number
        return scaled(left, number or None, right)


class Places(TorchFunctionMode):
    """Keeps where texts come out, as a block is followed."""

    def __init__(self, by: Followed):
        """Begin to count."""
        super().__init__()
        self.by = by
        self.count: Counter[Any] = Counter()
        self.seen: list[tuple[Place, Sum, tuple[int, ...]]] = []

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """Call a function of PyTorch's, and note what came of it."""
        said = func(*args, **(kwargs or {}))
        self.note(func, said)
        return said

    def note(self, what: Any, said: Any) -> None:
        """Note what comes out of a part, or of a function."""
        place = Place(what, self.count[what])
        self.count[what] += 1
        if is_tensor(said) and said.ndim == 3:
            self.seen.append((place, self.by.sum_of(said), tuple(said.shape)))


def is_tensor(thing: object) -> bool:
    """Whether something is a tensor."""
    return isinstance(thing, Tensor)


def is_several(thing: object) -> bool:
    """Whether something is a tuple of things, of which the first counts."""
    return isinstance(thing, tuple) and bool(thing)


@contextmanager
def watched(
    block: nn.Module, by: Followed, places: Places
) -> Iterator[dict[Any, Sum]]:
    """Know of each norm what it was given; and what all that ran said."""
    called: dict[Any, Sum] = {}
    before: list[Sum] = []
    named = {part: name for name, part in block.named_modules()}

    def begins(module: nn.Module, given: Any) -> None:
        before.append(by.sum_of(given[0]) if given else NOTHING)

    def ends(module: nn.Module, given: Any, said: Any) -> None:
        value = before.pop()
        if is_tensor(said) and value.inputs and said is not given[0]:
            by.note(said, of(by.normed(module, value, said)))
        places.note(named[module], said)

    def seen(module: nn.Module, given: Any, said: Any) -> None:
        called[module] = by.sum_of(said[0] if is_several(said) else said)
        if module is block:
            by.others = tuple(map(by.sum_of, tree_leaves(said)[1:]))

    with ExitStack() as stack:
        for module in block.modules():
            hooks = []
            if is_norm(module):
                hooks.append(module.register_forward_pre_hook(begins))
                hooks.append(module.register_forward_hook(ends))
            hooks.append(module.register_forward_hook(seen))
            for hook in hooks:
                stack.callback(hook.remove)
        yield called


def followed(
    block: nn.Module, call: Callable[..., Any], *widths: int
) -> Flow | None:
    """What a block makes of x, and perhaps of a context, of these widths.

    None if that cannot be followed.
    """
    only = one_length.of(call)
    lengths = [only] * 2 if only else free_sizes(block)
    lengths = lengths[: len(widths)]
    by = Followed(block)
    given: list[Tensor] = []
    terms: list[Said] = []
    for name, length, d in zip(
        ("x", "context"), lengths, widths, strict=False
    ):
        text = numbers(2, length, d, seed=len(given) + 1)
        terms.append(Said(name, shape=tuple(text.shape)))
        by.note(text, of(terms[-1]))
        given.append(text)
    try:
        # Without gradients, PyTorch's own layers are a single call.
        places = Places(by)
        watch = watched(block, by, places)
        with torch.enable_grad(), watch as called, places, by:
            output = call(*given)
    except Exception:
        return None  # what it cannot do is seen when it is asked
    if not (by.clear and is_tensor(output) and id(output) in by.known):
        return None
    value = by.sum_of(output)
    seen, averaged = tuple(places.seen), tuple(by.averaged)
    return Flow(
        value, terms[0], called, tuple(lengths), seen, averaged, by.others
    )


def free_sizes(block: nn.Module) -> list[int]:
    """Two lengths that no axis of what the block has learnt has."""
    taken = {size for x in block.parameters() for size in x.shape}
    free = [n for n in (7, 11, 13, 5, 9, 6, 4) if n not in taken]
    return [*free, 7, 6][:2]
