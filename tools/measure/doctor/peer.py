"""A peer of the audit, and what several of them are drawn from."""

from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

from torch import Tensor, nn

Made = tuple[Any, dict[str, Any], dict[str, Any]]  # thing, facts, setting


class Peer(NamedTuple):
    """A class or function of a library, and what to tell the doctor of it."""

    name: str
    package: str
    kind: str
    make: Callable[[Random], Made]
    expected: str = ""  # what it is called although it is sound, if it is
    note: str = ""  # what a reader should know of it


def peer(
    name: str,
    package: str,
    kind: str,
    expected: str = "",
    note: str = "",
) -> Callable[[Callable[[Random], Made]], Peer]:
    """Make a peer of the function that draws one. For use as a decorator."""

    def named(make: Callable[[Random], Made]) -> Peer:
        return Peer(name, package, kind, make, expected, note)

    return named


def heads(draw: Random, even: bool = False) -> dict[str, int]:
    """A width and a number of heads that divides it.

    Never as many heads as features a head, for some mistakes would not show;
    and never two features alone, where scores that are not scaled, as T5's,
    can drive a weight below what a change of input shows.
    """
    n_heads = draw.choice((1, 2, 3, 4, 6))
    widths = (4, 6, 8) if even else (3, 4, 5, 7, 8)
    width = draw.choice([w for w in widths if w != n_heads])
    return {"d_model": n_heads * width, "n_heads": n_heads}


def config(name: str, **options: Any) -> Any:
    """A configuration of transformers', without a vocabulary to speak of."""
    import transformers

    return getattr(transformers, name)(**options)


def hidden(draw: Random, even: bool = False) -> dict[str, int]:
    """A width and a number of heads under transformers' names."""
    size = heads(draw, even)
    return {
        "hidden_size": size["d_model"],
        "num_attention_heads": size["n_heads"],
    }


def path(draw: Random) -> dict[str, str]:
    """By which path transformers computes attention."""
    return {"attn_implementation": draw.choice(("eager", "sdpa"))}


def of_bert(setting: dict[str, Any]) -> dict[str, Any]:
    """What to tell of a layer that adds a mask with four axes."""
    return {
        "layout": "BND",
        "causal": False,
        "mask": "add",
        "mask_axes": "B1NN",
        "packed": "by part",
        "formula": "plain",
    }


def of_multihead(
    layer: nn.MultiheadAttention, weights: bool
) -> dict[str, Any]:
    """What to tell of PyTorch's layer."""
    return {
        "layout": "BND" if layer.batch_first else "NBD",
        "causal": False,
        "mask": "block",
        "mask_axes": "NN",
        "padding": "block",
        "packed": "by part",
        "call": {"need_weights": weights},
        "formula": "plain",
    }


class Contiguous(nn.Module):
    """A module whose input lies in memory row by row, whatever comes in."""

    def __init__(self, module: nn.Module):
        super().__init__()
        self.module = module
        self.d_model = module.embed_dim

    def forward(self, x: Tensor) -> Tensor:
        """Copy x where it must be, and call."""
        return self.module(x.contiguous())[0]
