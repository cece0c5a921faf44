"""Networks without attention, called as a block is: tokens in, tokens out.

`Recurrent` and `Convolution` are what the chapters compare attention with:
PyTorch's own layers.
"""

from collections.abc import Iterator
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor, nn

from selfattn.entering import check_enters
from selfattn.pieces import without_autocast
from selfattn.signatures import Count, Positive, checked
from selfattn.spoilt import felt_where_it_reaches
from selfattn.transforms import is_transformed

Tokens = Float[Tensor, "batch n d_model"]


class Recurrent(nn.Module):
    """PyTorch's RNN, LSTM or GRU, called as a block: tokens in, tokens out.

    Args:
        layer: one of `torch.nn`'s recurrent layers, with ``batch_first``.

    Raises:
        ValueError: if the layer would take the batch for the tokens.

    References: Hochreiter and Schmidhuber (1997); Cho et al. (2014).

    >>> import torch
    >>> layer = Recurrent(nn.LSTM(4, 6, batch_first=True))
    >>> layer(torch.zeros(2, 7, 4)).shape
    torch.Size([2, 7, 6])
    """

    @checked
    def __init__(self, layer: nn.RNNBase):
        """Keep the layer."""
        super().__init__()
        if not layer.batch_first:
            raise ValueError(
                "the batch must come first, (batch, tokens, features), but "
                "batch_first=False"
            )
        self.layer = layer

    @checked
    def forward(self, x: Tokens) -> Float[Tensor, "batch n d_out"]:
        """Every state, (batch, n, d_in) -> (batch, n, d_out)."""
        check_enters("x", x, self.layer)
        if x.shape[1] == 0:
            raise ValueError(
                "x must have at least 1 token to read, (batch, n, d_in), but "
                f"it is {tuple(x.shape)}"
            )
        try:
            return felt_where_it_reaches(
                partial(states, self.layer), x, partial(after, self.layer)
            )
        except RuntimeError as error:
            if "primitive descriptor" not in str(error):
                raise
            return in_own_type(self.layer, x)


def states(layer: nn.Module, x: Tensor) -> Tensor:
    """The layer's own, without the last ones of all its layers."""
    made: Tensor = unmapped(layer, x)[0]
    return made


def unmapped(layer: nn.Module, *given: Any) -> Any:
    """What a recurrent layer makes.

    Raises:
        ValueError: if `torch.func.vmap` is to map it.
    """
    try:
        return layer(*given)
    except RuntimeError as error:
        if not is_transformed() or "Batching rule" not in str(error):
            raise
        raise ValueError(
            "torch.func.vmap cannot map x over PyTorch's recurrent layers: "
            "it has no rule for them"
        ) from None


def after(layer: nn.RNNBase, lost: Tensor, made: Tensor) -> Tensor:
    """Where what is spoilt has been read: in a text that is read from both
    sides, everywhere.
    """
    if layer.bidirectional:
        return lost.any(dim=1, keepdim=True)
    return lost.cumsum(dim=1) > 0


def in_own_type(layer: nn.Module, x: Tensor) -> Tensor:
    """The layer in the type of its weights, for where autocast asks for one
    that PyTorch's library has no network for: an LSTM in float16, on a
    processor.
    """
    weight = next(layer.parameters())
    made = without_autocast(layer)(x.to(weight.dtype))[0]
    return made.to(torch.get_autocast_dtype(x.device.type))


class Convolution(nn.Module):
    """A stack of convolutions, x + relu(conv(x)), over the tokens.

    Args:
        d_model: number of features in and out.
        kernel: how many tokens one convolution sees, its own in the middle;
            of an even number, one more lies before it than after it.
        n_layers: how many stand on each other.
        dilated: whether layer l sees tokens kernel^l apart, so that the
            reach grows exponentially with the layers, not linearly.
        causal: see only tokens at and before one's own.

    References: van den Oord et al. (2016), section 2.1; Kalchbrenner et al.
    (2016).

    >>> Convolution(4, kernel=3, n_layers=4).reach
    9
    >>> Convolution(4, kernel=3, n_layers=4, dilated=True).reach
    81
    """

    @checked
    def __init__(
        self,
        d_model: Positive,
        *,
        kernel: Positive,
        n_layers: Count,
        dilated: bool = False,
        causal: bool = False,
    ):
        """Make the convolutions, without padding of their own."""
        super().__init__()
        self.causal = causal
        self.layers = nn.ModuleList(
            nn.Conv1d(
                d_model,
                d_model,
                kernel,
                dilation=kernel**layer if dilated else 1,
            )
            for layer in range(n_layers)
        )

    def spans(self) -> Iterator[int]:
        """How many tokens beside its own each layer reaches over."""
        for layer in self.layers:
            yield (layer.kernel_size[0] - 1) * layer.dilation[0]

    @property
    def reach(self) -> int:
        """How many tokens one output depends on: the receptive field."""
        return 1 + sum(self.spans())

    @checked
    def forward(self, x: Tokens) -> Tokens:
        """Mix neighbours, (batch, n, d_model) -> (batch, n, d_model)."""
        for layer, span in zip(self.layers, self.spans(), strict=True):
            check_enters("x", x, layer)
            if x.shape[1] == 0:  # of which PyTorch makes no convolution
                continue
            after = 0 if self.causal else span // 2
            network = partial(of_neighbours, layer, span - after)
            reached = partial(where_reached, layer, span - after)
            made = felt_where_it_reaches(network, x, reached, draws=False)
            x = x + made.relu()
        return x


def of_neighbours(layer: nn.Conv1d, before: int, x: Tensor) -> Tensor:
    """What a layer makes of (batch, n, features), tokens in and out."""
    return convolved(layer, x.mT, before).mT


def where_reached(
    layer: nn.Conv1d, before: int, lost: Tensor, made: Tensor
) -> Tensor:
    """Where a convolution reaches what is spoilt, (batch, n, 1). What it made
    does not tell: in bfloat16, PyTorch's hears one token beyond it.
    """
    n, felt = lost.shape[1], torch.zeros_like(lost)
    for tap in range(layer.kernel_size[0]):
        away = tap * layer.dilation[0] - before
        start, stop = max(0, -away), min(n, n - away)
        if start < stop:
            felt[:, start:stop] |= lost[:, start + away : stop + away]
    return felt


def convolved(layer: nn.Conv1d, x: Tensor, before: int) -> Tensor:
    """What a layer makes of (batch, features, n), with zeros on both sides.

    A tap that is n tokens away or farther meets zeros alone, and is left out:
    there may be more of those zeros than fit into memory.
    """
    dilation, n = layer.dilation[0], x.shape[-1]
    away = [tap * dilation - before for tap in range(layer.kernel_size[0])]
    near = [tap for tap, far in enumerate(away) if abs(far) < n]
    if len(near) == len(away):
        return layer(F.pad(x, (-away[0], away[-1])))
    if not near:
        return nothing_near(layer, x)
    padded = F.pad(x, (-away[near[0]], away[near[-1]]))
    weight = layer.weight[..., near[0] : near[-1] + 1]
    # One tap is no distance from itself; and 64 bits may not hold what it is.
    dilation = dilation if len(near) > 1 else 1
    return F.conv1d(
        padded, weight, layer.bias, dilation=dilation, groups=layer.groups
    )


def nothing_near(layer: nn.Conv1d, x: Tensor) -> Tensor:
    """What a layer makes of zeros alone: its bias, if it has one."""
    wide = x.new_zeros(*x.shape[:-2], layer.out_channels, x.shape[-1])
    return wide if layer.bias is None else wide + layer.bias[:, None]
