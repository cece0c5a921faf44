"""The layer of several heads."""

from collections.abc import Iterator

import torch
from torch import nn

from selfattn import MultiHeadAttention, fused_attention
from tools.measure.bench.race import HEADS, D, Race


def races() -> Iterator[Race]:
    """Our layer against PyTorch's: its default call, and its best."""
    d_model, n = HEADS * D, 4096
    theirs = nn.MultiheadAttention(
        d_model, HEADS, bias=False, batch_first=True
    )
    ours = MultiHeadAttention.from_torch(theirs)
    ours.attend = fused_attention
    default = lambda x: theirs(x, x, x)[0]  # noqa: E731
    lean = lambda x: theirs(x, x, x, need_weights=False)[0]  # noqa: E731

    def slow_path(x):
        torch.backends.mha.set_fastpath_enabled(False)
        try:
            return lean(x)
        finally:
            torch.backends.mha.set_fastpath_enabled(True)

    race = {
        "nn.MultiheadAttention": default,
        "need_weights=False": lean,
        "need_weights=False, fast path off": slow_path,
        "MultiHeadAttention": ours,
    }
    exact = MultiHeadAttention.from_torch(theirs).double()

    def expected(last, x):
        return exact(last, x)

    for training in (False, True):
        for layer in (theirs, ours):
            layer.train(training)
        fair = dict.fromkeys(race, expected)
        yield Race("layer", n, training, race, fair, layer=True)
