"""The encoder: a stack of blocks that sees all of what it is given.

A model is put together from parts that are made beforehand: an embedding, a
list of blocks, a last norm. What makes it BERT, a vision transformer or the
first half of T5 is which parts they are.
"""

from collections.abc import Callable, Iterable, Mapping, Set
from typing import Any

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from selfattn.bound import Owner, takes
from selfattn.called import answered, check_called, check_function
from selfattn.checks import check_floats
from selfattn.dot_product import still_finite
from selfattn.entering import check_numbers, check_same_shape
from selfattn.mismatches import check_filled
from selfattn.models.ties import let_keep
from selfattn.signatures import checked, shown
from selfattn.spoilt import of_each_token, spared

Mask = Bool[Tensor, "..."] | None
Relative = Callable[[int, int], Tensor] | None


class Encoder(Owner):
    """An embedding, blocks that look at all tokens, and perhaps a last norm.

    Args:
        embed: makes (batch, n, d_model) of what goes in: `Embedding` of
            token numbers, `PatchEmbedding` of images, `torch.nn.Identity` of
            vectors that are there already, or a module of yours.
        blocks: `EncoderBlock`s, in the order in which they work.
        norm: after the last block, as blocks with a norm *before* each
            sublayer want; none when None.
        relative: makes a bias for all blocks, (n_heads, n_q, n_k), called as
            ``relative(n_q, n_k)``: `T5Bias`, or `alibi_bias` with its number
            of heads bound.

    Reference: Vaswani et al. (2017), section 3.1.

    >>> import torch
    >>> from selfattn.blocks import EncoderBlock
    >>> from selfattn.models import Embedding
    >>> blocks = [EncoderBlock(8, 2, 32, pre=True) for _ in range(3)]
    >>> encoder = Encoder(Embedding(11, 8), blocks)
    >>> encoder(torch.tensor([[3, 1, 4, 1]])).shape
    torch.Size([1, 4, 8])
    """

    OWNED = ("relative",)

    @checked
    def __init__(
        self,
        embed: nn.Module,
        blocks: Iterable[nn.Module],
        *,
        norm: nn.Module | None = None,
        relative: Relative = None,
    ):
        """Keep the parts."""
        super().__init__()
        self.embed = embed
        self.blocks = stacked(blocks, named=("mask", "bias"))
        self.norm = nn.Identity() if norm is None else norm
        check_relative(relative)
        self.relative = relative

    def __setattr__(self, name: str, x: Any) -> None:
        """Set a part; who writes with the embedding has the one it had."""
        if name == "embed" and x is not self._modules.get(name):
            let_keep(self._modules.get(name))
        super().__setattr__(name, x)

    @checked
    def forward(
        self,
        tokens: Tensor,
        *,
        segments: Int[Tensor, "batch n"] | None = None,
        mask: Mask = None,
    ) -> Float[Tensor, "batch n d_model"]:
        """Turn tokens into vectors that know of each other.

        Args:
            tokens: what the embedding takes, such as (batch, n) numbers.
            segments: which segment each token is of; handed to the embedding.
            mask: True where a token may look: padding, say, or the edges of
                a graph. Shapes as for `MultiHeadAttention`.

        Returns:
            One vector a token, (batch, n, d_model).
        """
        told = {} if segments is None else {"segments": segments}
        check_told(self.embed, **told)
        x = self.embed(spared(self.embed, tokens), **told)
        check_embedded(x)
        check_filled(self.blocks, x)
        n = x.shape[-2]
        bias = bias_of(self.relative, n, n, x)
        for block in self.blocks:
            x = block(x, mask=mask, bias=bias)
        return last_normed(self.norm, x)


def last_normed(norm: nn.Module, x: Tensor) -> Tensor:
    """What the last norm makes of all tokens, as many as they are."""
    made = of_each_token(norm)(x)
    check_same_shape("norm", made, x)
    return made


def check_told(embed: nn.Module, **told: Tensor) -> None:
    """Raise unless an embedding takes what it is to be told besides."""
    if told and not takes(embed, *told):
        raise ValueError(
            "segments are for an embedding that takes them, as `Embedding` "
            f"does, but embed is {shown(embed)}"
        )


def check_embedded(x: Any) -> None:
    """Raise unless an embedding made vectors of what went in."""
    check_floats("what embed makes", x)
    if x.ndim != 3:
        raise ValueError(
            "embed must make (batch, n, d_model), but it made "
            f"{tuple(x.shape)}"
        )


def stacked(
    blocks: Iterable[nn.Module], *given: str, named: tuple[str, ...]
) -> nn.ModuleList:
    """The blocks of a model, in the order in which they work; each can be
    called with x, and with what is given besides.
    """
    # Each can be gone through, and be none; a set has no order.
    if isinstance(
        blocks, Tensor | str | bytes | Mapping | Set | nn.ModuleDict
    ):
        raise TypeError(
            "blocks must be modules, one after another, as in a list, but "
            f"they are {shown(blocks)}"
        )
    listed = list(blocks)
    for block in listed:
        if not isinstance(block, nn.Module):
            raise TypeError(
                f"blocks must be modules, but one is {shown(block)}"
            )
        check_called("a block", block, "x", *given, named=named)
    return nn.ModuleList(listed)


def check_relative(relative: Relative) -> None:
    """Raise unless this makes a bias, if there is one."""
    if relative is not None:
        check_called("relative", relative, "n_q", "n_k")


def bias_of(
    relative: Relative, n_q: int, n_k: int, x: Tensor
) -> Float[Tensor, "1 h {n_q} {n_k}"] | None:
    """The bias that all blocks share, on the device and in the type of x."""
    if relative is None:
        return None
    check_function("relative", relative)  # which may have been set later
    bias = answered("relative", relative, n_q, n_k)
    check_numbers("what relative makes", bias, x)
    if bias.ndim != 3 or bias.shape[1:] != (n_q, n_k):
        raise ValueError(
            f"relative must make (n_heads, n_q, n_k) = (n_heads, {n_q}, "
            f"{n_k}), but it made {tuple(bias.shape)}"
        )
    return still_finite(bias[None].to(x.device), x.dtype)
