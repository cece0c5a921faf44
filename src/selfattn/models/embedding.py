"""Embeddings: token numbers become vectors that know their places."""

from collections.abc import Callable
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from selfattn.called import answered, check_called, check_function
from selfattn.dot_product import check_scale
from selfattn.entering import (
    check_numbers,
    check_same_shape,
    look_up,
    made_by,
)
from selfattn.models.ties import Held
from selfattn.signatures import Count, Positive, Share, checked
from selfattn.spoilt import of_each_token

Ids = Int[Tensor, "batch n"]


class Embedding(Held):
    """A vector for each token, with its position's and its segment's added.

    Args:
        n_tokens: number of different tokens.
        d_model: width of the vectors.
        positions: what to add for each position, called as
            ``positions(n, offset=…)``: `LearnedPositions`, or `sinusoidal`
            with its width bound. None where attention itself is told.
        n_segments: how many segments have a vector, as BERT's two sentences.
        scale: what token vectors are multiplied by; √d_model in 2017.
        norm: makes a normalisation of the sum from d_model; BERT has one.
        dropout: share of the features dropped in training.

    References: Vaswani et al. (2017), section 3.4; Devlin et al. (2019),
    section 3.

    >>> from selfattn.positions import LearnedPositions
    >>> embed = Embedding(11, 6, positions=LearnedPositions(8, 6))
    >>> embed(torch.tensor([[3, 1, 4]])).shape
    torch.Size([1, 3, 6])
    """

    OWNED = ("positions",)

    @checked
    def __init__(
        self,
        n_tokens: Positive,
        d_model: Positive,
        *,
        positions: Callable[..., Tensor] | None = None,
        n_segments: Count = 0,
        scale: float = 1.0,
        norm: Callable[[int], nn.Module] = nn.Identity,
        dropout: Share = 0.0,
    ):
        """Start small, as learned positions do."""
        super().__init__()
        if positions is not None:
            check_called("positions", positions, "n", named=("offset",))
        self.tokens = nn.Embedding(n_tokens, d_model)
        nn.init.normal_(self.tokens.weight, std=0.02)
        check_scale(scale)
        self.positions, self.scale = positions, scale
        self.segments = None
        if n_segments:
            self.segments = nn.Embedding(n_segments, d_model)
            nn.init.normal_(self.segments.weight, std=0.02)
        self.norm = made_by("norm", norm, d_model)
        self.dropout = nn.Dropout(dropout)

    @checked
    def forward(
        self, tokens: Ids, *, segments: Ids | None = None, offset: int = 0
    ) -> Float[Tensor, "batch n d_model"]:
        """Look up and add.

        Args:
            tokens: token numbers, (batch, n).
            segments: which segment each is of, (batch, n); the first for all
                when None.
            offset: position of the first token.

        Returns:
            Vectors, (batch, n, d_model).

        Raises:
            ValueError: if a token or a segment has no vector.
        """
        x = look_up("tokens", tokens, self.tokens) * self.scale
        if self.positions is not None:
            check_function("positions", self.positions)  # if set later
            asked = "positions", self.positions, tokens.shape[-1]
            places = answered(*asked, offset=offset)
            check_positions(places, x)
            x = x + places.to(x)
        if self.segments is not None:
            told = torch.zeros_like(tokens) if segments is None else segments
            x = x + look_up("segments", told, self.segments)
        elif segments is not None:
            raise ValueError(
                "only an embedding with vectors for segments can tell them "
                f"apart, but n_segments=0 and segments={tuple(segments.shape)}"
            )
        normed = of_each_token(self.norm)(x)
        check_same_shape("norm", normed, x)
        return self.dropout(normed)


def check_positions(places: Any, x: Tensor) -> None:
    """Raise unless this is a vector for each position, the same in all texts:
    a number, say, would be added to all, and not say so.
    """
    check_numbers("what positions makes", places, x)
    if places.shape != x.shape[1:]:
        raise ValueError(
            f"positions must make (n, d_model) = {tuple(x.shape[1:])}, but it "
            f"made {tuple(places.shape)}"
        )
