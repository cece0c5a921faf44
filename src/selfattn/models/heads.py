"""What stands on an encoder: a class, a label a token, a span, a word.

These are the small last layers of a model, not the heads of its attention.
Each takes what `Encoder` returns, (batch, n, d_model).
"""

import math

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from selfattn.checks import are_at_hand
from selfattn.entering import check_enters
from selfattn.layers import LayerNorm, gelu
from selfattn.models.embedding import Embedding
from selfattn.signatures import Positive, Share, checked
from selfattn.spoilt import projected, spared

Encoded = Float[Tensor, "batch n d_model"]
Padding = Bool[Tensor, "#batch 1 1 n"] | None


class Pooler(nn.Module):
    """One vector for a whole text: the first token's, once more bent.

    Nothing sets the first token apart but that one always puts the same
    there, [CLS], and trains this.

    Args:
        d_model: number of features in and out.

    Reference: Devlin et al. (2019), section 3.
    """

    @checked
    def __init__(self, d_model: Positive):
        """Make the map."""
        super().__init__()
        self.dense = nn.Linear(d_model, d_model)

    @checked
    def forward(self, x: Encoded) -> Float[Tensor, "batch d_model"]:
        """Take the first token, map, bend: (batch, n, d) -> (batch, d)."""
        check_enters("x", x, self.dense)
        if x.shape[1] == 0:
            raise ValueError(
                "a text must have a first token to stand for it, but x is "
                f"{tuple(x.shape)}"
            )
        return projected(self.dense, x[:, 0]).tanh()


class ClassHead(nn.Module):
    """A class for a whole text.

    Args:
        d_model: number of features of each token.
        n_classes: number of classes.
        dropout: share of the pooled features dropped in training.

    >>> ClassHead(8, 3)(torch.zeros(2, 5, 8)).shape
    torch.Size([2, 3])
    """

    @checked
    def __init__(
        self, d_model: Positive, n_classes: Positive, *, dropout: Share = 0.0
    ):
        """Make the pooler and the scores of the classes."""
        super().__init__()
        self.pooler = Pooler(d_model)
        self.dropout = nn.Dropout(dropout)
        self.classes = nn.Linear(d_model, n_classes)

    @checked
    def forward(self, x: Encoded) -> Float[Tensor, "batch n_classes"]:
        """Logits of the classes, (batch, n, d_model) -> (batch, n_classes)."""
        return projected(self.classes, self.dropout(self.pooler(x)))


class LabelHead(nn.Module):
    """A label for each token, as for the names in a text.

    Args:
        d_model: number of features of each token.
        n_labels: number of labels.
        dropout: share of the features dropped in training.

    >>> LabelHead(8, 3)(torch.zeros(2, 5, 8)).shape
    torch.Size([2, 5, 3])
    """

    @checked
    def __init__(
        self, d_model: Positive, n_labels: Positive, *, dropout: Share = 0.0
    ):
        """Make the scores of the labels."""
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.labels = nn.Linear(d_model, n_labels)

    @checked
    def forward(self, x: Encoded) -> Float[Tensor, "batch n n_labels"]:
        """Logits, (batch, n, d_model) -> (batch, n, n_labels)."""
        check_enters("x", x, self.labels)
        return projected(self.labels, self.dropout(x))


class SpanHead(nn.Module):
    """Where an answer starts and where it ends.

    Args:
        d_model: number of features of each token.

    Reference: Devlin et al. (2019), section 4.2.

    >>> start, end = SpanHead(8)(torch.zeros(2, 5, 8))
    >>> start.shape, end.shape
    (torch.Size([2, 5]), torch.Size([2, 5]))
    """

    @checked
    def __init__(self, d_model: Positive):
        """Make both scores of a token."""
        super().__init__()
        self.ends = nn.Linear(d_model, 2)

    @checked
    def forward(
        self, x: Encoded, *, mask: Padding = None
    ) -> tuple[Float[Tensor, "batch n"], Float[Tensor, "batch n"]]:
        """Logits of the first and of the last token of the answer.

        Args:
            x: what the encoder made, (batch, n, d_model).
            mask: True for tokens that are real, as `padding_mask` makes it;
                the others get minus infinity.

        Raises:
            ValueError: if the mask is not one row for each text, or for all.
        """
        check_enters("x", x, self.ends)
        check_padding(mask, x)
        start, end = projected(self.ends, x).unbind(dim=-1)
        if mask is not None:
            padding = ~mask[:, 0, 0]
            start = start.masked_fill(padding, -math.inf)
            end = end.masked_fill(padding, -math.inf)
        return start, end


def check_padding(mask: Padding, x: Tensor) -> None:
    """Raise unless a mask says of each token of a text whether it is real."""
    rows = {(len(x), 1, 1, x.shape[1]), (1, 1, 1, x.shape[1])}
    if mask is not None and tuple(mask.shape) not in rows:
        raise ValueError(
            "mask must be padding alone, as `padding_mask` makes it, (batch, "
            f"1, 1, n) = {(len(x), 1, 1, x.shape[1])}, but it is "
            f"{tuple(mask.shape)}"
        )


@checked
def best_span(
    start: Float[Tensor, "batch n"],
    end: Float[Tensor, "batch n"],
    *,
    longest: int | None = None,
) -> Int[Tensor, "batch 2"]:
    """The first and last token of the likeliest span: no end before a start.

    The two logits are added in their own type: where that rounds, spans that
    differ by less are alike.

    Args:
        start: logits of being first, (batch, n).
        end: logits of being last, (batch, n).
        longest: number of tokens that a span may have; any when None.

    Raises:
        ValueError: if a span may not have one token, or there is none to
            choose: a row of sums has NaN or plus infinity, or nothing finite.

    Reference: Devlin et al. (2019), section 4.2.

    >>> start = torch.tensor([[0.0, 2.0, 5.0]])
    >>> best_span(start, torch.tensor([[7.0, 4.0, 0.0]])).tolist()
    [[0, 0]]
    """
    n = start.shape[-1]
    if n == 0:
        raise ValueError(
            "a text must have a token to answer, but start is "
            f"{tuple(start.shape)}"
        )
    longest = n if longest is None else longest
    if longest < 1:
        raise ValueError(f"a span has at least 1 token, but longest={longest}")
    spans = start[:, :, None] + end[:, None, :]  # (batch, first, last)
    allowed = torch.ones(n, n, dtype=torch.bool, device=start.device)
    allowed = allowed.triu().tril(longest - 1)
    sums = spans.masked_fill(~allowed, -math.inf).flatten(1)
    check_spans(sums, start)
    best = sums.argmax(dim=-1)
    return torch.stack((best // n, best % n), dim=-1)


def check_spans(sums: Tensor, start: Tensor) -> None:
    """Raise unless each text has a likeliest span.

    NaN is the largest of all; and where all is hidden, all spans are alike.
    """
    if are_at_hand(sums) and not sums.amax(dim=-1).isfinite().all():
        raise ValueError(
            "a span can be chosen by logits without NaN and plus infinity, "
            "the sum of two of which at least is finite, but a row of start "
            f"and end has none: start is {tuple(start.shape)}"
        )


class WordHead(nn.Module):
    """Which word stands at each place, for texts with some words hidden.

    Its last matrix is the table of the embedding; `Bert` keeps them one when
    it moves or is loaded.

    Args:
        embed: the embedding of the encoder that it stands on.
        eps: that of its `LayerNorm`.

    References: Devlin et al. (2019), section 3.1; Press and Wolf (2017).

    >>> WordHead(Embedding(11, 8))(torch.zeros(2, 5, 8)).shape
    torch.Size([2, 5, 11])
    """

    @checked
    def __init__(self, embed: Embedding, *, eps: float = 1e-12):
        """Make the map before the table, and tie the table."""
        super().__init__()
        n_tokens, d_model = embed.tokens.weight.shape
        self.dense = nn.Linear(d_model, d_model)
        self.norm = LayerNorm(d_model, eps=eps)
        self.words = nn.Linear(d_model, n_tokens)
        self.words.weight = embed.tokens.weight

    @checked
    def forward(self, x: Encoded) -> Float[Tensor, "batch n n_tokens"]:
        """Logits, (batch, n, d_model) -> (batch, n, n_tokens)."""
        check_enters("x", x, self.dense)

        def network(x: Tensor) -> Tensor:
            return self.words(
                self.norm(gelu(self.dense(spared(self.dense, x))))
            )

        return projected(network, x, of=self)
