"""The encoder–decoder: one stack reads, another writes what it was told.

This is the model of 2017, and T5's and BART's.
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from selfattn.blocks import check_keeps
from selfattn.called import known_as
from selfattn.mismatches import check_filled
from selfattn.models.decoder import (
    Cache,
    Writer,
    check_list,
    check_new,
    head_of,
    length_of,
    remembered,
)
from selfattn.models.embedding import Embedding
from selfattn.models.encoder import (
    Encoder,
    Relative,
    bias_of,
    check_relative,
    last_normed,
    stacked,
)
from selfattn.models.ties import by_one_name
from selfattn.signatures import checked
from selfattn.spoilt import spared

Mask = Bool[Tensor, "..."] | None
Source = Int[Tensor, "batch n_k"]
Target = Int[Tensor, "batch n_q"]
SOURCE, TARGET = ({"tokens": name} for name in ("source", "target"))
TABLES = {"mask": "target_mask", "memory_mask": "mask"}


class Memory(NamedTuple):
    """A source that was read: what each block's cross-attention asks."""

    kept: Cache
    mask: Tensor | None


def for_each(memory: Memory, n_rows: int) -> Memory:
    """The memory with a row for each of some texts, that share its own.

    Where they cannot be shared out evenly it stays as it is, and the
    cross-attention says what does not fit.
    """
    n_own = len(memory.kept[0].k) if memory.kept else n_rows
    if n_own in (0, n_rows) or n_rows % n_own or not n_rows:
        return memory
    times = n_rows // n_own
    kept = [
        type(one)(*(part.repeat_interleave(times, dim=0) for part in one))
        for one in memory.kept
    ]
    mask = memory.mask
    if mask is not None and mask.ndim > 3 and len(mask) == n_own:
        mask = mask.repeat_interleave(times, dim=0)
    return Memory(kept, mask)


def check_one_row(mask: Mask) -> None:
    """Raise if a mask tells apart who looks at the source: both stacks do, and
    the rows of one are no rows of the other, though they be equally many.
    """
    if mask is not None and mask.ndim > 1 and mask.shape[-2] != 1:
        raise ValueError(
            "mask must be the source's padding, one row for all that look at "
            "it, as `padding_mask` makes it, (batch, 1, 1, n_k), but it is "
            f"{tuple(mask.shape)}"
        )


class EncoderDecoder(Writer):
    """An encoder, and blocks that write while looking at what it made.

    Args:
        encoder: reads the source.
        embed: the `Embedding` of the target; the encoder's own, if source
            and target have the same tokens.
        blocks: `DecoderBlock`s, in the order in which they work.
        norm: after the last block; none when None.
        relative: a bias for the self-attention of all blocks; as for
            `Encoder`.
        tied: whether the scores are made with the target's table.

    References: Vaswani et al. (2017), section 3.1; Raffel et al. (2020),
    section 2.1.

    >>> import torch
    >>> from selfattn.blocks import DecoderBlock, EncoderBlock
    >>> embed = Embedding(11, 8)
    >>> encoder = Encoder(embed, [EncoderBlock(8, 2, 32, pre=True)])
    >>> blocks = [DecoderBlock(8, 2, 32, pre=True)]
    >>> model = EncoderDecoder(encoder, embed, blocks)
    >>> model(torch.tensor([[3, 1, 4, 1]]), torch.tensor([[2, 7]])).shape
    torch.Size([1, 2, 11])
    """

    @checked
    def __init__(
        self,
        encoder: Encoder,
        embed: Embedding,
        blocks: Iterable[nn.Module],
        *,
        norm: nn.Module | None = None,
        relative: Relative = None,
        tied: bool = True,
    ):
        """Keep the parts, and make the scores."""
        super().__init__()
        self.encoder = encoder
        self.embed = embed  # if it is the encoder's, that has it
        named = "mask", "memory_mask", "bias"
        self.blocks = stacked(blocks, "memory", named=named)
        self.norm = nn.Identity() if norm is None else norm
        check_relative(relative)
        self.relative = relative
        self.head = head_of(embed, tied)

    def __setattr__(self, name: str, x: Any) -> None:
        """Keep each part once: of a module under two names, what PyTorch's
        `functional_call` took away is not put back.
        """
        if name == "encoder":  # another: the embedding stays what it was
            self._keep_table()
        if name == "embed" and x is self.encoder.embed:
            self._modules.pop(name, None)
        else:
            super().__setattr__(name, x)

    def __getattr__(self, name: str) -> Any:
        """The encoder's embedding, where the target has none of its own."""
        if name == "embed" and name not in self._modules:
            return self.encoder.embed
        return super().__getattr__(name)

    def _keep_table(self) -> None:
        """Have an embedding of its own, if it was the encoder's until now."""
        encoder = self._modules.get("encoder")
        if encoder is not None and "embed" not in self._modules:
            self._modules["embed"] = encoder.embed

    def _load_from_state_dict(self, numbers: Any, prefix: str, *more: Any):
        """Take the embedding by either name, if it has but one here."""
        if "embed" not in self._modules:
            places = f"{prefix}embed.", f"{prefix}encoder.embed."
            *_, errors = more
            errors += by_one_name(numbers, *places)
        super()._load_from_state_dict(numbers, prefix, *more)

    @checked
    def forward(
        self,
        source: Source,
        target: Target,
        *,
        mask: Mask = None,
        target_mask: Mask = None,
    ) -> Float[Tensor, "batch n_q n_tokens"]:
        """Logits of what follows each target token, all at once.

        Args:
            source: token numbers, (batch, n_k).
            target: those of the target so far, (batch, n_q).
            mask: its padding, as `padding_mask` makes it: one row of keys,
                for all that look at the source.
            target_mask: who may look at whom in the target, besides the
                causal mask.

        Returns:
            Logits, (batch, n_q, n_tokens).
        """
        check_one_row(mask)
        memory = known_as(SOURCE, self.encoder, source, mask=mask)
        x = known_as(TARGET, self.embed, spared(self.embed, target))
        check_filled(self.blocks, x)
        n = x.shape[-2]
        bias = bias_of(self.relative, n, n, x)
        for block in self.blocks:
            tables = {"mask": target_mask, "memory_mask": mask, "bias": bias}
            x = known_as(TABLES, block, x, memory, **tables)
        return self.scores(last_normed(self.norm, x))

    @checked
    def read(self, source: Source, *, mask: Mask = None) -> Memory:
        """Read a source once, for every step of writing.

        Args:
            source: token numbers, (batch, n_k).
            mask: its padding, as `padding_mask` makes it.
        """
        check_one_row(mask)
        memory = known_as(SOURCE, self.encoder, source, mask=mask)
        kept = []
        for block in self.blocks:
            cross: Any = getattr(block, "cross", block)
            check_keeps(cross)
            kept.append(cross.keys_values(memory))
        return Memory(kept, mask)

    @checked
    def step(
        self, tokens: Target, cache: Cache | None = None, *, memory: Memory
    ) -> tuple[Float[Tensor, "batch n_tokens"], Cache]:
        """Logits of the one token that comes next, and what to keep.

        Args:
            tokens: the new tokens of the target, (batch, n).
            cache: what this returned for those before; it is not changed.
            memory: what `read` made of the source. Several rows of tokens
                for each of its rows, side by side, as `beam_search` has
                them, all look at that one.

        Returns:
            The logits, (batch, n_tokens), and the longer cache.
        """
        check_new(tokens)
        n_past = length_of(cache, len(self.blocks))
        check_list("memory.kept", memory.kept)
        length_of(memory.kept, len(self.blocks), "memory.kept")
        memory = for_each(memory, len(tokens))
        x = self.embed(spared(self.embed, tokens), offset=n_past)
        check_filled(self.blocks, x)
        n = x.shape[-2]
        bias = bias_of(self.relative, n, n_past + n, x)
        longer = []
        for i, block in enumerate(self.blocks):
            kept = remembered(block, x, cache, i)
            names = {
                "memory_mask": "memory.mask",
                "memory": f"memory.kept[{i}]",
            }
            tables = {"memory_mask": memory.mask, "bias": bias}
            asked = memory.kept[i]
            x = known_as(names, block, x, asked, kept=kept, **tables)
            longer.append(kept)
        return self.scores(last_normed(self.norm, x[:, -1])), longer
