"""The decoder: a stack of blocks that writes, one token after another.

This is GPT's kind, with nothing to translate from. Its blocks are
`EncoderBlock`s under a causal mask: see `blocks`.
"""

from collections.abc import Iterable
from typing import Any

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from selfattn.called import known_as
from selfattn.entering import check_four_axes
from selfattn.mismatches import check_filled
from selfattn.models.embedding import Embedding
from selfattn.models.encoder import (
    Relative,
    bias_of,
    check_relative,
    last_normed,
    stacked,
)
from selfattn.models.ties import Tied
from selfattn.multihead import KeysValues
from selfattn.signatures import checked, shown
from selfattn.spoilt import projected, spared

Cache = list[KeysValues]  # one for each block
Ids = Int[Tensor, "batch n"]


class Writer(Tied):
    """What scores tokens with a ``head``, which may be the table of ``embed``.

    Such a head stays the table, wherever the model goes and whatever it loads;
    two that differ are refused, unless they are assigned (``assign=True``).
    Within a larger model it does so where that has the embedding beside it,
    but not where it has the embedding's ``tokens``, or the head, alone. What
    `torch.nn.utils.parametrize` makes of the table is the embedding's alone:
    the head scores with the numbers that it is made of.
    """

    AT_SCORES, AT_TABLE = "head", "embed.tokens"
    OWNED = ("relative",)
    embed: Embedding
    head: nn.Linear

    def scores(self, x: Tensor) -> Tensor:
        """Of each token; one that is spoilt is not felt by the ``head``."""
        return projected(self.head, x)


class Decoder(Writer):
    """An embedding, causal blocks, a last norm, and a score for each token.

    Args:
        embed: the `Embedding` of the tokens.
        blocks: `EncoderBlock`s, in the order in which they work.
        norm: after the last block; none when None.
        relative: as for `Encoder`.
        tied: whether the scores are made with the embedding's table, as in
            GPT-2, or with a matrix of their own, as in most of Llama.

    References: Radford et al. (2019), section 2.3; Press and Wolf (2017).

    >>> import torch
    >>> from selfattn.blocks import EncoderBlock
    >>> blocks = [EncoderBlock(8, 2, 32, pre=True) for _ in range(3)]
    >>> model = Decoder(Embedding(11, 8), blocks)
    >>> model(torch.tensor([[3, 1, 4, 1]])).shape
    torch.Size([1, 4, 11])
    """

    @checked
    def __init__(
        self,
        embed: Embedding,
        blocks: Iterable[nn.Module],
        *,
        norm: nn.Module | None = None,
        relative: Relative = None,
        tied: bool = True,
    ):
        """Keep the parts, and make the scores."""
        super().__init__()
        self.embed = embed
        self.blocks = stacked(blocks, named=("mask", "bias", "causal"))
        self.norm = nn.Identity() if norm is None else norm
        check_relative(relative)
        self.relative = relative
        self.head = head_of(embed, tied)

    @checked
    def forward(
        self, tokens: Ids, *, mask: Bool[Tensor, "..."] | None = None
    ) -> Float[Tensor, "batch n n_tokens"]:
        """Logits of what follows each token, all at once, as for training.

        Args:
            tokens: token numbers, (batch, n).
            mask: who may look at whom, besides the causal mask.

        Returns:
            Logits, (batch, n, n_tokens).
        """
        x = self.embed(spared(self.embed, tokens))
        check_filled(self.blocks, x)
        n = x.shape[-2]
        bias = bias_of(self.relative, n, n, x)
        for block in self.blocks:
            x = block(x, mask=mask, bias=bias, causal=True)
        return self.scores(last_normed(self.norm, x))

    @checked
    def step(
        self, tokens: Ids, cache: Cache | None = None
    ) -> tuple[Float[Tensor, "batch n_tokens"], Cache]:
        """Logits of the one token that comes next, and what to keep.

        Args:
            tokens: the new tokens, (batch, n): at first the whole prompt,
                then the one chosen.
            cache: what this returned for the tokens before; it is not
                changed, so several ways on can start from one cache.

        Returns:
            The logits, (batch, n_tokens), and the longer cache.
        """
        check_new(tokens)
        n_past = length_of(cache, len(self.blocks))
        x = self.embed(spared(self.embed, tokens), offset=n_past)
        check_filled(self.blocks, x)
        n = x.shape[-2]
        bias = bias_of(self.relative, n, n_past + n, x)
        longer = []
        for i, block in enumerate(self.blocks):
            kept = remembered(block, x, cache, i)
            x = block(x, kept=kept, bias=bias, causal=True)
            longer.append(kept)
        return self.scores(last_normed(self.norm, x[:, -1])), longer


def check_new(tokens: Tensor) -> None:
    """Raise unless there is a token for something to come after."""
    if tokens.shape[1] == 0:
        raise ValueError(
            "a step needs at least 1 token, (batch, n), but tokens is "
            f"{tuple(tokens.shape)}"
        )


def remembered(
    block: Any, x: Tensor, cache: Cache | None, i: int
) -> KeysValues:
    """What a block, the i-th, keeps of x, and of the tokens before it.

    Raises:
        ValueError: if it keeps nothing.
    """
    if not hasattr(block, "remember"):
        raise ValueError(
            "a block must have remember, as `EncoderBlock` has, to go on "
            f"where it stopped, but it is {shown(block)}"
        )
    past = None if cache is None else cache[i]
    return known_as({"past": f"cache[{i}]"}, block.remember, x, past)


def check_list(name: str, cache: object) -> None:
    """Raise unless this is a list, as a cache is."""
    if not isinstance(cache, list):
        raise TypeError(f"{name} must be a list, but it is {shown(cache)}")


def length_of(cache: Cache | None, n_blocks: int, name: str = "cache") -> int:
    """How many tokens a cache holds, which is called so where it came from.

    Raises:
        ValueError: if it is not of so many blocks, or if they do not hold
            equally many; or if there is no block, whose cache would not tell.
    """
    if n_blocks == 0:
        raise ValueError(
            "a step needs at least 1 block, which remembers the tokens before "
            "it, but there is none"
        )
    if cache is None:
        return 0
    kept = [kv for kv in cache if isinstance(kv, KeysValues)]
    for i, kv in enumerate(kept):
        check_four_axes(f"{name}[{i}]", kv)
    lengths = [kv.k.shape[-2] for kv in kept]
    # Compared one by one: in an export they are in no set, being unknown.
    unlike = any(n != lengths[0] for n in lengths)
    if not len(cache) == len(kept) == n_blocks or unlike:
        raise ValueError(
            f"{name} must hold the KeysValues of each block, of equally many "
            f"tokens, but there are {n_blocks} blocks and it holds "
            f"{[type(kv).__name__ for kv in cache]}, of {lengths} tokens"
        )
    return lengths[0]


def head_of(embed: Embedding, tied: bool) -> nn.Linear:
    """The scores of all tokens: the embedding's own table, if tied."""
    n_tokens, d_model = embed.tokens.weight.shape
    head = nn.Linear(d_model, n_tokens, bias=False)
    if tied:
        head.weight = embed.tokens.weight
    return head
