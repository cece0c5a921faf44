"""Blocks: attention and a feed-forward network, each on a residual path.

An encoder block looks at its own tokens. A decoder block looks at its own
past, and then at what an encoder made. A model that only writes, such as
GPT, is a stack of encoder blocks with ``causal=True``: with no encoder there
is nothing for the second look.

A block can also go on where it stopped. `remember` returns the keys and
values of the tokens so far, and ``kept=`` lets new tokens ask them; nothing
is stored in the block.
"""

from collections.abc import Callable
from functools import partial

from jaxtyping import Bool, Float
from torch import Tensor, nn

from selfattn.bound import takes
from selfattn.called import known_as
from selfattn.entering import made_alike, made_by
from selfattn.layers import AddNorm, FeedForward, LayerNorm
from selfattn.mismatches import check_filled
from selfattn.multihead import KeysValues, MultiHeadAttention
from selfattn.signatures import Positive, Share, checked, shown
from selfattn.spoilt import of_each_token

Tokens = Float[Tensor, "batch n d_model"]
Memory = Float[Tensor, "batch n_k d_model"] | KeysValues
Mask = Bool[Tensor, "..."] | None
Bias = Float[Tensor, "..."] | None


class EncoderBlock(nn.Module):
    """Self-attention, then a feed-forward network, each with add and norm.

    Args:
        d_model: number of features in and out.
        n_heads: number of heads; must divide d_model.
        d_ff: number of features within the feed-forward network.
        pre: where the norms stand; see `AddNorm`.
        dropout: share of what each sublayer made dropped in training. The
            weights' dropout is an option of ``multihead``, that within the
            feed-forward network one of ``feed_forward``.
        norm: makes a normalisation from d_model.
        multihead: makes the attention from d_model and n_heads.
        feed_forward: makes the network from d_model and d_ff.

    Reference: Vaswani et al. (2017), section 3.1.

    >>> import torch
    >>> from selfattn.layers import RMSNorm, SwiGLU
    >>> from selfattn.positions import rope_halves
    >>> llama = EncoderBlock(
    ...     12,
    ...     6,
    ...     32,
    ...     pre=True,
    ...     norm=RMSNorm,
    ...     multihead=partial(
    ...         MultiHeadAttention, n_kv_heads=2, rotate=rope_halves
    ...     ),
    ...     feed_forward=SwiGLU,
    ... )
    >>> llama(torch.zeros(2, 7, 12), causal=True).shape
    torch.Size([2, 7, 12])
    """

    @checked
    def __init__(
        self,
        d_model: Positive,
        n_heads: int,
        d_ff: Positive,
        *,
        pre: bool,
        dropout: Share = 0.0,
        norm: Callable[[int], nn.Module] = LayerNorm,
        multihead: Callable[[int, int], nn.Module] = MultiHeadAttention,
        feed_forward: Callable[[int, int], nn.Module] = FeedForward,
    ):
        """Make the two sublayers and the paths around them."""
        super().__init__()
        path = partial(AddNorm, d_model, pre=pre, dropout=dropout, norm=norm)
        self.attention = made_attention(multihead, d_model, n_heads)
        self.add_norm_1 = path()
        self.feed_forward = made_by(
            "feed_forward", feed_forward, d_model, d_ff
        )
        self.add_norm_2 = path()

    @checked
    def forward(
        self,
        x: Tokens,
        *,
        kept: KeysValues | None = None,
        mask: Mask = None,
        bias: Bias = None,
        causal: bool = False,
    ) -> Tokens:
        """Mix the tokens, then work on each.

        Args:
            x: (batch, n, d_model).
            kept: the keys and values to look at, from `remember`; those of x
                when None.
            mask: True where a token may attend; as for `MultiHeadAttention`.
            bias: added to the scaled scores; likewise.
            causal: hide from each token those after it.

        Returns:
            What became of the tokens, (batch, n, d_model).

        Raises:
            ValueError: what `MultiHeadAttention` raises.
        """
        check_filled(self, x)
        look = partial(
            known_as,
            {"context": "kept"},
            self.attention,
            context=kept,
            mask=mask,
            bias=bias,
            causal=causal,
        )
        x = self.add_norm_1(x, look)
        return self.add_norm_2(x, self.feed_forward)

    @checked
    def remember(
        self, x: Tokens, past: KeysValues | None = None
    ) -> KeysValues:
        """The keys and values of x behind those of the tokens before it.

        Args:
            x: the new tokens, (batch, n, d_model), as `forward` takes them.
            past: what this returned for the tokens before; None at first.

        >>> import torch
        >>> block = EncoderBlock(8, 2, 32, pre=True)
        >>> x = torch.randn(1, 5, 8)
        >>> kept = block.remember(x[:, 4:], block.remember(x[:, :4]))
        >>> new = block(x[:, 4:], kept=kept, causal=True)
        >>> torch.allclose(new, block(x, causal=True)[:, 4:], atol=1e-5)
        True
        """
        return look_back(self.attention, self.add_norm_1, x, past)


class DecoderBlock(nn.Module):
    """Causal self-attention, cross-attention, then the feed-forward network.

    Arguments are those of `EncoderBlock`; ``multihead`` makes both kinds of
    attention, and the second never rotates.

    Reference: Vaswani et al. (2017), section 3.1.

    >>> import torch
    >>> block = DecoderBlock(8, 2, 32, pre=False)
    >>> block(torch.zeros(3, 5, 8), torch.zeros(3, 7, 8)).shape
    torch.Size([3, 5, 8])
    """

    @checked
    def __init__(
        self,
        d_model: Positive,
        n_heads: int,
        d_ff: Positive,
        *,
        pre: bool,
        dropout: Share = 0.0,
        norm: Callable[[int], nn.Module] = LayerNorm,
        multihead: Callable[[int, int], nn.Module] = MultiHeadAttention,
        feed_forward: Callable[[int, int], nn.Module] = FeedForward,
    ):
        """Make the three sublayers and the paths around them."""
        super().__init__()
        path = partial(AddNorm, d_model, pre=pre, dropout=dropout, norm=norm)
        self.attention = made_attention(multihead, d_model, n_heads)
        self.add_norm_1 = path()
        self.cross = made_attention(multihead, d_model, n_heads)
        if self.cross is self.attention:
            raise ValueError(
                "multihead must make a new layer each time, as only the "
                f"first rotates, but it made one twice: {shown(self.cross)}"
            )
        # Positions in x and in the memory are no distance from each other.
        self.cross.rotate = None
        self.add_norm_2 = path()
        self.feed_forward = made_by(
            "feed_forward", feed_forward, d_model, d_ff
        )
        self.add_norm_3 = path()

    @checked
    def forward(
        self,
        x: Tokens,
        memory: Memory,
        *,
        kept: KeysValues | None = None,
        mask: Mask = None,
        memory_mask: Mask = None,
        bias: Bias = None,
        causal: bool = True,
    ) -> Tokens:
        """Look at one's own past, then at the memory; then work on each.

        Args:
            x: the tokens so far, (batch, n, d_model).
            memory: what the encoder made, (batch, n_k, d_model), or the keys
                and values that ``cross.keys_values`` made of it.
            kept: as for `EncoderBlock`.
            mask: who may look at whom among x.
            memory_mask: who may look at what of the memory; its padding.
            bias: added to the scaled scores among x.
            causal: hide from each token those after it.

        Returns:
            What became of the tokens, (batch, n, d_model).

        Raises:
            ValueError: what `MultiHeadAttention` raises.
        """
        check_filled(self, x)
        look = partial(
            known_as,
            {"context": "kept"},
            self.attention,
            context=kept,
            mask=mask,
            bias=bias,
            causal=causal,
        )
        names = {"mask": "memory_mask", "context": "memory"}
        look_across = partial(
            known_as, names, self.cross, context=memory, mask=memory_mask
        )
        x = self.add_norm_1(x, look)
        x = self.add_norm_2(x, look_across)
        return self.add_norm_3(x, self.feed_forward)

    @checked
    def remember(
        self, x: Tokens, past: KeysValues | None = None
    ) -> KeysValues:
        """Keys and values of x for self-attention, as in `EncoderBlock`."""
        return look_back(self.attention, self.add_norm_1, x, past)


def made_attention(
    multihead: Callable[[int, int], nn.Module], d_model: int, n_heads: int
) -> nn.Module:
    """A layer of attention, as ``multihead`` makes it.

    Raises:
        ValueError: if it cannot be called as `MultiHeadAttention` is.
    """
    made = made_by("multihead", multihead, d_model, n_heads)
    if not takes(made, "context", "mask", "bias", "causal"):
        raise ValueError(
            "multihead must make a layer that takes context, mask, bias and "
            f"causal, as `MultiHeadAttention` does, but it made {shown(made)}"
        )
    return made


def check_keeps(attention: nn.Module) -> None:
    """Raise unless a layer can make keys and values to ask again."""
    if not hasattr(attention, "keys_values"):
        raise ValueError(
            "a layer must have keys_values, as `MultiHeadAttention` has, to "
            f"remember tokens, but it is {shown(attention)}"
        )


def look_back(
    attention: nn.Module, path: AddNorm, x: Tensor, past: KeysValues | None
) -> KeysValues:
    """Keys and values of x as attention sees it: a pre-norm comes first."""
    check_keeps(attention)
    seen = x.clone()  # what works in place gets a copy, as in `AddNorm`
    if path.pre:
        seen = made_alike("norm", of_each_token(path.norm), seen)
    return attention.keys_values(seen, past)
