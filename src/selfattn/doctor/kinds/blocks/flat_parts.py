"""Parts that lie flat in a block: maps without a module of their own."""

import inspect
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from selfattn.doctor.deviations.design import USUAL, Design, attend
from selfattn.doctor.kind import UnclearError
from selfattn.doctor.kinds.blocks import activations
from selfattn.doctor.kinds.layer.parts import HEADS, number
from selfattn.doctor.patient import Facts
from selfattn.multihead import merge_heads, split_heads

BENDS = ("relu", "gelu", "silu", "tanh", "sigmoid", "leaky_relu", "elu")
QUERIES = {
    "q": ("q", "query", "wq", "w_q", "to_q", "q_proj", "q_linear"),
    "k": ("k", "key", "wk", "w_k", "to_k", "k_proj", "k_linear"),
    "v": ("v", "value", "wv", "w_v", "to_v", "v_proj", "v_linear"),
    "o": ("o", "out", "wo", "w_o", "to_out", "o_proj", "out_proj", "proj"),
}


def attention(block: nn.Module, facts: Facts) -> Any:
    """Attention of maps that lie in the block itself, if they do.

    Raises:
        UnclearError: if what was named is not a map each for q, k and v.
    """
    names = facts.get("flat_attention") or found(block)
    if names is None:
        return None
    maps = tuple(block.get_submodule(name) for name in names)
    if len(maps) not in (3, 4) or any(map(is_fused, maps[:3])):
        raise UnclearError(
            "flat_attention=(q, k, v, out) names a map each, but here are "
            f"{', '.join(names)}. A map that makes q, k and v at once can be "
            "read in a module of its own: put attention into one, and say "
            "attention=…, its name in the block."
        )
    told = facts.get("n_heads")
    return Flat(maps, told or number(block, HEADS) or 1)


def is_fused(part: Any) -> bool:
    """Whether a map makes queries, keys and values at once."""
    return isinstance(part, nn.Linear) and (
        part.out_features == 3 * part.in_features
    )


class Flat(NamedTuple):
    """Attention of some maps: for q, k and v, and perhaps for its output."""

    maps: tuple[Any, ...]
    n_heads: int
    design: Design = USUAL
    splits: tuple[Callable[[Tensor, int], Tensor], ...] = (split_heads,) * 3
    merge: Callable[[Tensor], Tensor] = merge_heads
    end: Callable[[Tensor, Tensor], Tensor] = lambda output, x: output

    def __call__(
        self, x: Tensor, context: Any = None, mask: Any = None
    ) -> Tensor:
        """What each token of x is told by those of the context, or of x."""
        y = x if context is None else context
        q, k, v = (
            split(one(t), self.n_heads)
            for split, one, t in zip(
                self.splits, self.maps, (x, y, y), strict=False
            )
        )
        merged = self.merge(attend(self.design, q, k, v, mask))
        output = self.maps[3](merged) if len(self.maps) > 3 else merged
        return self.end(output, x)


def found(block: nn.Module) -> Sequence[str] | None:
    """The names of the maps for q, k, v and out, if a block has them."""
    children = {
        name.lower(): name
        for name, child in block.named_children()
        if isinstance(child, nn.Linear)
    }
    names = [
        next((children[w] for w in words if w in children), None)
        for words in QUERIES.values()
    ]
    if None in names[:3]:
        return None
    return [name for name in names if name is not None]


def network(
    block: nn.Module,
    facts: Facts,
    width: int,
    call: Callable[..., object],
    n: int,
) -> Any:
    """A network of maps that lie in the block itself, if they do.

    Two, with a bend between them; or three, of which the first is bent and
    multiplied by the second. ``call`` calls the block, with n texts.

    Raises:
        UnclearError: if nothing tells what bends it.
    """
    if facts.get("flat_feed_forward") is not None:
        return told_network(block, facts)
    up_and_down = maps_of(block, width)
    if up_and_down is None:
        return None
    ups, downs = up_and_down
    found = activations.seen(ups, downs[0], call, width, n)
    read = read_off(block) if found is None and len(ups) == 1 else None
    ups, [down] = [of_tokens(one) for one in ups], map(of_tokens, downs)
    if read is not None:
        return Network(ups[0], bent(block, read), down)
    if found is None:
        raise UnclearError(
            "I cannot tell what bends its network. Say flat_feed_forward="
            "(first, bend, last), by their names in the block."
        )
    order, bend = found
    beside = ups[order[1]] if len(order) > 1 else None
    return Network(ups[order[0]], bend, down, beside)


def told_network(block: nn.Module, facts: Facts) -> Any:
    """The network of two maps that were named, with what bends it."""
    first, bend, last = facts["flat_feed_forward"]
    up, down = block.get_submodule(first), block.get_submodule(last)
    return Network(of_tokens(up), bent(block, bend), of_tokens(down))


def maps_of(
    block: nn.Module, width: int
) -> tuple[list[nn.Module], list[nn.Module]] | None:
    """The maps of a block to another width, and the one back; None if none."""
    maps = {m: w for m in block.children() if (w := widths_of(m))}
    ups = [m for m, (taken, made) in maps.items() if made != width == taken]
    downs = [m for m, (taken, made) in maps.items() if taken != width == made]
    wide = {maps[one][1] for one in ups}
    fit = len(ups) in (1, 2) and [*wide] == [maps[one][0] for one in downs]
    return (ups, downs) if fit else None


def widths_of(part: nn.Module) -> tuple[int, int] | None:
    """How wide what a map takes and gives is; None if it is no map.

    A convolution of width one maps each token by itself.
    """
    if isinstance(part, nn.Linear):
        return part.in_features, part.out_features
    if isinstance(part, nn.Conv1d) and part.kernel_size == (1,):
        return part.in_channels, part.out_channels
    return None


def of_tokens(part: nn.Module) -> Callable[[Tensor], Tensor]:
    """A map of tokens, (batch, tokens, features), if it takes them turned."""
    if not isinstance(part, nn.Conv1d):
        return part
    return lambda x: part(x.transpose(-1, -2)).transpose(-1, -2)


class Network(NamedTuple):
    """Two maps with a bend between them, or three."""

    first: Any
    bend: Any
    last: Any
    beside: Any = None  # what the first is multiplied by, once it is bent

    def __call__(self, x: Tensor) -> Tensor:
        """What the network makes of each token."""
        return self.joined(self.bend(self.first(x)), x)

    def straight(self, x: Tensor) -> Tensor:
        """The same without the bend."""
        return self.joined(self.first(x), x)

    def joined(self, y: Tensor, x: Tensor) -> Tensor:
        """What comes of the first map, multiplied and mapped back."""
        return self.last(y if self.beside is None else y * self.beside(x))


def bent(block: nn.Module, name: Any) -> Callable[[Tensor], Tensor]:
    """The function between two maps, by its name in the block or PyTorch."""
    if callable(name):
        return name
    found: Callable[[Tensor], Tensor] | None = getattr(
        block, name, getattr(F, name, getattr(torch, name, None))
    )
    if found is None:
        raise UnclearError(f"I know no function {name!r} to bend numbers by.")
    return found


def read_off(block: nn.Module) -> str | None:
    """The bend that a block's text names, or that it has as a module."""
    for name, child in block.named_children():
        if type(child).__name__.lower() in BENDS:
            return name
    try:
        text = inspect.getsource(type(block))
    except (OSError, TypeError):
        text = ""
    words = set(re.findall(r"\w+", text))
    named = [bend for bend in BENDS if bend in words]
    return named[0] if len(named) == 1 else None
