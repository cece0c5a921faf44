"""The linear attention of pytorch-fast-transformers."""

import functools
from collections.abc import Callable

import torch
from torch import Tensor

from tools.measure.bench.race import D


def fast_linear(
    causal: bool, name: str, features=None
) -> dict[str, Callable[..., Tensor]]:
    """The linear attention of pytorch-fast-transformers, on any features."""
    try:
        from fast_transformers.attention import (
            CausalLinearAttention,
            LinearAttention,
        )
        from fast_transformers.masking import (
            FullMask,
            LengthMask,
            TriangularCausalMask,
        )

        kind = CausalLinearAttention if causal else LinearAttention
        layer = kind(D, feature_map=features)

        @functools.cache  # it asks for them, and they are the same every time
        def masks(n):
            mask = TriangularCausalMask(n) if causal else FullMask(n)
            return mask, LengthMask(torch.tensor([n]))

        def fast(q, k, v):
            mask, lengths = masks(q.shape[-2])
            swapped = (x.transpose(1, 2) for x in (q, k, v))
            return layer(*swapped, mask, lengths, lengths).transpose(1, 2)

        fast.features = layer.feature_map
        return {name: fast}
    except ImportError:
        return {}
