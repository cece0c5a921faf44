"""A race: candidates on the same inputs, and what they should give."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import torch.nn.functional as F
from torch import Tensor, nn

HEADS, D = 8, 64
WINDOW = 256
# What this package brings to a race; the others are held against it.
MINE = (
    "flash_attention",
    "MultiHeadAttention",
    "sliding_window_attention",
    "linear_attention",
    "swin_attention",
    "strided_attention",
    "longformer_attention",
    "LinformerAttention",
    "performer_attention",
    "lsh_attention",
)


class Race(NamedTuple):
    """Candidates on the same inputs; the first is the one to compare with.

    What a candidate can prepare once, as a mask, it has prepared beforehand.
    A layer with weights is a module: in training its weights have gradients.
    """

    name: str
    n: int
    training: bool
    candidates: dict[str, Callable[..., Tensor]]
    expected: dict[str, Callable[..., Tensor]]  # on the last queries
    layer: bool = False  # of (1, n, d_model) instead of q, k and v

    @property
    def mine(self) -> str | None:
        """Which candidate is this package's; the first, if it has two."""
        names = (name for name in self.candidates if name in MINE)
        return next(names, None)


class Around(nn.Module):
    """A layer that wants to be called in its own way; its weights in sight."""

    def __init__(self, layer: nn.Module, call: Callable[..., Tensor]):
        """The layer, and a function of it and the input."""
        super().__init__()
        self.layer, self.call = layer, call

    def forward(self, x: Tensor) -> Tensor:
        """What the layer gives for (1, n, d_model)."""
        return self.call(self.layer, x)


def sdpa(q, k, v, causal=False):
    """PyTorch's own."""
    return F.scaled_dot_product_attention(q, k, v, is_causal=causal)


def lean_sizes(*ns: int) -> Iterator[tuple[int, bool]]:
    """Each length, forward and in training."""
    for training in (False, True):
        for n in ns:
            yield n, training


def sizes(*ns: int) -> Iterator[tuple[int, bool]]:
    """Each length forward, and the first and last in training, too."""
    for n in ns:
        yield n, False
    yield 1024, True
    yield ns[-1], True
