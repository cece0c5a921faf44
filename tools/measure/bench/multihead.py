"""The layer of several heads."""

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from selfattn import MultiHeadAttention, fused_attention
from tools.measure.bench.race import HEADS, Around, D, Race


def lean(layer: nn.MultiheadAttention, x: Tensor) -> Tensor:
    """The call that builds no table of weights."""
    return layer(x, x, x, need_weights=False)[0]


def slow_path(layer: nn.MultiheadAttention, x: Tensor) -> Tensor:
    """The same without the path that PyTorch takes in evaluation."""
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        return lean(layer, x)
    finally:
        torch.backends.mha.set_fastpath_enabled(True)


def races() -> Iterator[Race]:
    """Our layer against PyTorch's: its default call, and its best."""
    d_model, n = HEADS * D, 4096
    theirs = nn.MultiheadAttention(d_model, HEADS, bias=True, batch_first=True)
    with torch.no_grad():  # they begin at zero
        theirs.in_proj_bias.normal_()
        theirs.out_proj.bias.normal_()
    ours = MultiHeadAttention.from_torch(theirs)
    ours.attend = fused_attention
    race = {
        "nn.MultiheadAttention": Around(theirs, lambda f, x: f(x, x, x)[0]),
        "need_weights=False": Around(theirs, lean),
        "need_weights=False, fast path off": Around(theirs, slow_path),
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
