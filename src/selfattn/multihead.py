"""Several attentions at once: multi-head, cross and grouped-query attention.

One attention has one softmax: each query can make one choice of where to
look. `MultiHeadAttention` cuts the features into heads that choose on their
own, and joins what they bring back.
"""

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from selfattn.bound import Owner, check_keeps, takes, unbound
from selfattn.called import check_bound, check_called
from selfattn.checks import (
    check_divides,
    check_dropout,
    check_floats,
    check_places,
    is_autocast,
)
from selfattn.dot_product import (
    Attend,
    attention,
    attention_weights,
    fused_attention,
)
from selfattn.entering import (
    attended,
    check_axes,
    check_drops,
    check_enters,
    check_four_axes,
    check_matrices,
    check_unbound,
    lent,
    made_alike,
    weighed,
)
from selfattn.signatures import Positive, checked
from selfattn.spoilt import projected
from selfattn.torch_layer import (
    check_own_ways,
    copied,
    pair_up,
    torch_layer_like,
    without_numbers,
)


class KeysValues(NamedTuple):
    """Keys and values made once, (batch, n_kv_heads, n_k, d_head), to keep."""

    k: Tensor
    v: Tensor


Tokens = Float[Tensor, "batch n_q d_model"]
Context = Float[Tensor, "batch n_k d_context"] | KeysValues | None
Mask = Bool[Tensor, "..."] | None
Bias = Float[Tensor, "..."] | None
Rotate = Callable[..., Tensor] | None
# What the layer hands to its mechanism, and nobody else.
AT_EACH_CALL = ("mask", "bias", "causal", "dropout_p")


class MultiHeadAttention(Owner):
    """Project, attend in every head, put the heads together, project back.

        headᵢ = attend(x W_qⁱ, c W_kⁱ, c W_vⁱ)     output = [head₁ … headₕ] W_o

    with c the context: x itself in self-attention, ``layer(x)``; something
    else in cross-attention, ``layer(x, context)``. In the papers' names:
    n_heads is h, the width of a head, d_model / n_heads, is d_k and d_v, and
    n_kv_heads is G, the number of groups. Wᵢ^Q, of head i, is its columns of
    our W_q, which makes the queries of all heads at once; so are Wᵢ^K and
    Wᵢ^V of W_k and W_v. W^O is W_o.

    Fewer key heads than query heads is grouped-query attention, one key head
    multi-query attention. Query head i reads key head i // group: a row for
    each query head, a column for each key head,

    >>> from selfattn.masks import draw
    >>> layer = MultiHeadAttention(12, n_heads=6, n_kv_heads=2)
    >>> x = torch.randn(1, 5, 12)
    >>> repeated, own = layer.heads(x)[1][0], layer.keys_values(x).k[0]
    >>> print(draw((repeated[:, None] == own).all(dim=(-2, -1))))
    ■ ·
    ■ ·
    ■ ·
    · ■
    · ■
    · ■

    Args:
        d_model: width of x and of the output.
        n_heads: number of query heads; must divide d_model.
        n_kv_heads: number of key and value heads; must divide n_heads. As
            many as query heads when None.
        d_context: width of the context; d_model when None.
        projection_bias: whether the four projections add a bias, as those of
            `torch.nn.MultiheadAttention` do.
        dropout: share of the weights dropped in training; needs a mechanism
            that takes ``dropout_p``.
        attend: how one head attends: any mechanism of this book. Options of
            its own may be bound by `functools.partial`; a mask, a bias,
            ``causal`` and ``dropout_p`` may not: those the layer hands over.
        rotate: tells queries and keys where they are, as ``rope`` does:
            called as ``rotate(x, offset=…)``, where the offset is the
            position of x's first token. The last query sits on the last key.
            Where ranks share the tokens, it must add where the rank begins.

    Raises:
        ValueError: if the heads do not divide evenly, if ``attend`` has no
            weights to drop or binds what the layer hands over, or if
            ``dropout`` is no probability.

    References: Vaswani et al. (2017), section 3.2.2; Ainslie et al. (2023),
    section 2.2.

    >>> layer = MultiHeadAttention(d_model=12, n_heads=3)
    >>> layer(torch.zeros(2, 7, 12)).shape
    torch.Size([2, 7, 12])
    """

    OWNED = ("attend", "rotate")

    @checked
    def __init__(
        self,
        d_model: Positive,
        n_heads: int,
        *,
        n_kv_heads: int | None = None,
        d_context: Positive | None = None,
        projection_bias: bool = False,
        dropout: float = 0.0,
        attend: Attend = attention,
        rotate: Rotate = None,
    ):
        """Make the four projections of the paper."""
        super().__init__()
        n_kv_heads = n_heads if n_kv_heads is None else n_kv_heads
        d_context = d_model if d_context is None else d_context
        check_divides("n_heads", n_heads, "d_model", d_model)
        check_divides("n_kv_heads", n_kv_heads, "n_heads", n_heads)
        check_mechanism(attend, dropout)
        if rotate is not None:
            check_called("rotate", rotate, "x", named=("offset",))
        d_kv = d_model // n_heads * n_kv_heads
        self.n_heads, self.n_kv_heads = n_heads, n_kv_heads
        self.d_model, self.d_context = d_model, d_context
        self.d_head = d_model // n_heads
        self.attend, self.dropout, self.rotate = attend, dropout, rotate
        self.W_q = nn.Linear(d_model, d_model, bias=projection_bias)
        self.W_k = nn.Linear(d_context, d_kv, bias=projection_bias)
        self.W_v = nn.Linear(d_context, d_kv, bias=projection_bias)
        self.W_o = nn.Linear(d_model, d_model, bias=projection_bias)

    @checked
    def heads(
        self, x: Tokens, context: Context = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values, each (batch, n_heads, n, d_head).

        Queries and keys are rotated, if the layer does so. Key and value
        heads that several query heads share are repeated, so that no
        mechanism needs to know about groups.

        Raises:
            ValueError: if x or the context has another width than the layer.
        """
        check_matrices(self)
        check_enters("x", x, self.W_q)
        if not isinstance(context, KeysValues):
            context = self.keys_values(x if context is None else context)
        check_kept(self, "context", context, x)
        q = split_heads(projected(self.W_q, x), self.n_heads)
        k, v = (kept.to(q.dtype) for kept in context)
        if self.rotate is not None:
            n_past = k.shape[-2] - q.shape[-2]
            q = made_alike("rotate", self.rotate, q, offset=n_past)
        group = self.n_heads // self.n_kv_heads
        if group > 1:  # repeating once would still copy
            k = k.repeat_interleave(group, dim=-3)
            v = v.repeat_interleave(group, dim=-3)
        return q, k, v

    @checked
    def keys_values(
        self, context: Tokens, past: KeysValues | None = None
    ) -> KeysValues:
        """Keys and values of a context, to ask again without making them.

        Args:
            context: what is asked, (batch, n, d_context).
            past: what this returned for the tokens before it; it is left as
                it is, and what is new goes behind a copy of it.

        Returns:
            Keys, rotated if the layer does so, and values, of all tokens so
            far, (batch, n_kv_heads, n_k, d_head): a context for `forward`.

        Raises:
            ValueError: if the context has another width than the layer; if
                each of several ranks would rotate from position 0; or if the
                mechanism chooses keys by how many there are, and some are
                kept.

        >>> layer, x = MultiHeadAttention(8, 2), torch.randn(1, 5, 8)
        >>> kept = layer.keys_values(x[:, 4:], layer.keys_values(x[:, :4]))
        >>> new = layer(x[:, 4:], kept, causal=True)
        >>> torch.allclose(new, layer(x, causal=True)[:, 4:], atol=1e-6)
        True
        """
        check_matrices(self)
        check_enters("context (without one, x)", context, self.W_k)
        check_keeps(self, grows=past is not None)
        if past is not None:
            check_kept(self, "past", past, context)
        k = split_heads(projected(self.W_k, context), self.n_kv_heads)
        v = split_heads(projected(self.W_v, context), self.n_kv_heads)
        if self.rotate is not None:
            n_past = past.k.shape[-2] if past else 0
            k = made_alike("rotate", self.rotate, k, offset=n_past)
        if past is not None:
            k = torch.cat((past.k.to(k.dtype), k), -2)
            v = torch.cat((past.v.to(v.dtype), v), -2)
        return KeysValues(k, v)

    @checked
    def forward(
        self,
        x: Tokens,
        context: Context = None,
        *,
        mask: Mask = None,
        bias: Bias = None,
        causal: bool = False,
    ) -> Tokens:
        """Attend from x to the context, or to x itself when there is none.

        Args:
            x: what asks, (batch, n_q, d_model).
            context: what is asked, (batch, n_k, d_context), or the keys and
                values that `keys_values` made of it.
            mask: True where a query may attend: (n_q, n_k), or four axes
                that broadcast to (batch, n_heads, n_q, n_k).
            bias: added to the scaled scores; shapes as for the mask.
            causal: hide from each query the keys after it.

        Returns:
            What each query was told, (batch, n_q, d_model).

        Raises:
            ValueError: if a mask or bias has three axes: nobody could tell
                whether the first is the batch or the heads. And what `heads`
                and the mechanism raise.
        """
        check_axes(mask=mask, bias=bias)
        check_unbound(self.attend, *AT_EACH_CALL)
        attend: Callable[..., Tensor] = self.attend
        if self.training and self.dropout:
            attend = partial(attend, dropout_p=self.dropout)
        q, k, v = self.heads(x, context)
        if isinstance(context, KeysValues):
            k, v = lent(attend, k, v)
        tables = {"mask": mask, "bias": bias, "causal": causal}
        output = attended(attend, q, k, v, **tables)
        return projected(self.W_o, merge_heads(output), self.d_model)

    @checked
    def weights(
        self,
        x: Tokens,
        context: Context = None,
        *,
        mask: Mask = None,
        bias: Bias = None,
        causal: bool = False,
    ) -> Float[Tensor, "batch n_heads n_q n_k"]:
        """The weights of every head, before dropout, if it has any.

        Arguments are those of `forward`.

        Raises:
            ValueError: if the mechanism never makes a table of weights.
        """
        check_axes(mask=mask, bias=bias)
        check_unbound(self.attend, *AT_EACH_CALL)
        weigh = weights_of(self.attend)
        q, k, _ = self.heads(x, context)
        return weighed(weigh, q, k, mask=mask, bias=bias, causal=causal)

    @classmethod
    @checked
    def from_torch(cls, layer: nn.MultiheadAttention) -> "MultiHeadAttention":
        """A layer of ours with a copy of the weights of PyTorch's.

        What is frozen stays frozen.

        Raises:
            ValueError: if it has what ours does not; see
                `torch_layer.options_of`.
            TypeError: if a subclass is made with other arguments.
        """
        ours = without_numbers(cls, layer)
        ours.train(layer.training)
        copied(pair_up(ours, layer))
        return ours

    def to_torch(self) -> nn.MultiheadAttention:
        """PyTorch's layer with a copy of our weights, batch first.

        What is frozen stays frozen; but where one matrix of PyTorch's holds
        three of ours, all three are trained if one is.

        Raises:
            ValueError: if ours does what PyTorch's does not, as a subclass
                may; see `torch_layer.torch_layer_like`.
        """
        check_own_ways(self, MultiHeadAttention)
        layer = torch_layer_like(self)
        copied([(to, mine) for mine, to in pair_up(self, layer)])
        return layer


@checked
def split_heads(
    x: Float[Tensor, "*batch n d_model"], n_heads: int
) -> Float[Tensor, "*batch {n_heads} n d_model//{n_heads}"]:
    """Cut the last axis into heads: (..., n, h d) -> (..., h, n, d)."""
    check_divides("n_heads", n_heads, "d_model", x.shape[-1])
    return x.unflatten(-1, (n_heads, -1)).transpose(-3, -2)


@checked
def merge_heads(
    x: Float[Tensor, "*batch h n d"],
) -> Float[Tensor, "*batch n h*d"]:
    """Put the heads side by side again: (..., h, n, d) -> (..., n, h d)."""
    return x.transpose(-3, -2).flatten(-2)


def check_mechanism(attend: Attend, dropout: float) -> None:
    """Raise unless the layer can call it, and drop its weights if it is to."""
    check_dropout(dropout, "dropout")
    check_unbound(attend, *AT_EACH_CALL)
    check_bound("attend", attend)
    if not takes(attend, "mask", "bias", "causal"):
        raise ValueError(
            "a mechanism must take mask, bias and causal by name, as "
            f"`fused_attention` does, but attend={attend}"
        )
    check_drops(attend, dropout)


def weights_of(attend: Any) -> Callable[..., Tensor]:
    """How a mechanism's table of weights is made.

    Raises:
        ValueError: if it never makes one.
    """
    function, options = unbound(attend)
    if function in (attention, fused_attention):
        return partial(attention_weights, scale=options.get("scale"))
    weigh = getattr(attend, "weights", getattr(function, "weights", None))
    if not callable(weigh):
        raise ValueError(
            "only a mechanism with a table of weights can show it, but "
            f"attend={attend}"
        )
    known = inspect.signature(weigh).parameters
    return partial(weigh, **{n: x for n, x in options.items() if n in known})


def check_kept(
    layer: MultiHeadAttention, name: str, kept: KeysValues, x: Tensor
) -> None:
    """Raise unless keys and values were kept of such a batch, by such a layer:
    those of one sequence would broadcast to all, and not say so.
    """
    check_four_axes(name, kept)
    k, v = kept
    wanted = (x.shape[0], layer.n_kv_heads, k.shape[-2], layer.d_head)
    if not tuple(k.shape) == tuple(v.shape) == wanted:
        raise ValueError(
            f"{name} must hold keys and values of this batch and layer, "
            f"(batch, n_kv_heads, n_k, d_head) = {wanted}, but k is "
            f"{tuple(k.shape)} and v is {tuple(v.shape)}"
        )
    check_places(**{"x": x, f"{name}.k": k, f"{name}.v": v})
    for part, made in (("k", k), ("v", v)):
        check_floats(f"{name}.{part}", made)  # whatever autocast would take
    if not (k.dtype == v.dtype == x.dtype or is_autocast(x)):
        raise ValueError(
            f"{name} must have the type of x, {x.dtype}, but k is {k.dtype} "
            f"and v is {v.dtype}"
        )
