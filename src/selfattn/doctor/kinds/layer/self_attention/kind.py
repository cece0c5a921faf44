"""Modules that attend from a sequence to itself."""

import torch
from torch import Tensor

from selfattn.doctor.kind import Examples, Kind
from selfattn.doctor.kinds.attention.calling import MEANT
from selfattn.doctor.kinds.layer import calling, exercise, reading
from selfattn.doctor.kinds.layer.facts import FACTS
from selfattn.multihead import MultiHeadAttention


class Causal(MultiHeadAttention):
    """A layer that hides later tokens without being told to."""

    def forward(self, x: Tensor) -> Tensor:  # type: ignore[override]
        """Attend from each token to those before it, and itself."""
        return super().forward(x, causal=True)


def windows(n_q: int, n_k: int) -> Tensor:
    """Windows of four that begin two later: 2 tokens, 4, 4, and so on."""
    window = (torch.arange(n_k) + 2) // 4
    return window[n_k - n_q :, None] == window


class InWindows(MultiHeadAttention):
    """A layer that sees the tokens of its own window alone."""

    def forward(self, x: Tensor) -> Tensor:  # type: ignore[override]
        """Attend from each token to those of its window."""
        return super().forward(x, mask=windows(x.shape[-2], x.shape[-2]))


def examples() -> Examples:
    """Healthy layers, of each sort of probes."""
    plain = {"causal": False, "layout": "BND"}
    own = {**plain, "formula": "own"}
    layer = MultiHeadAttention(12, 3, projection_bias=True)
    return {
        "": (layer, plain),
        "causal": (
            Causal(12, 3, projection_bias=True),
            {**plain, "causal": True},
        ),
        "properties": (layer, own),
        "in windows": (InWindows(12, 3), {"table": windows, **own}),
    }


KIND = Kind(
    "self-attention",
    does="a module that attends from a sequence to itself",
    exercise=exercise.of,
    facts=FACTS,
    read=reading.read,
    prepare=calling.prepared,
    code=calling.code,
    adapt=calling.adapt,
    fallback=reading.fallback,
    examples=examples,
    meant=MEANT,
    perhaps=reading.perhaps,
)
