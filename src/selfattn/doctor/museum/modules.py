"""Modules that attend by heads."""

import torch
import torch.nn.functional as F
from torch import nn

from selfattn.doctor.museum.entry import room

D, HEADS = 12, 3


class Sound(nn.Module):
    """A module as it should be; the rooms change one step of it each."""

    def __init__(self) -> None:
        super().__init__()
        self.d_model, self.n_heads, self.head_dim = D, HEADS, D // HEADS
        self.W_q = nn.Linear(D, D)
        self.W_k = nn.Linear(D, D)
        self.W_v = nn.Linear(D, D)
        self.W_o = nn.Linear(D, D)

    def split(self, x):
        """Cut the features into heads: (batch, heads, n, d_head)."""
        return x.unflatten(-1, (self.n_heads, -1)).transpose(1, 2)

    def merge(self, x):
        """Put the heads side by side again."""
        return x.transpose(1, 2).flatten(2)

    def scale(self):
        """What the scores are divided by."""
        return self.head_dim**0.5

    def attend(self, q, k, v):
        """Scores, softmax, weighted sum."""
        return (q @ k.mT / self.scale()).softmax(dim=-1) @ v

    def forward(self, x):
        """Project, split, attend, merge, project."""
        q, k, v = (W(x) for W in (self.W_q, self.W_k, self.W_v))
        heads = self.attend(self.split(q), self.split(k), self.split(v))
        return self.W_o(self.merge(heads))


@room(
    "lucidrains/vit-pytorch#65",
    "2021-01",
    kind="self-attention",
    named="scaled by the width of the model",
)
class ScaledByTheModel(Sound):
    """A reader asked whether the scale should not be that of one head.

    The author: nearly a year of writing attention, and still this.
    """

    def scale(self):
        """The root of the whole width."""
        return self.d_model**0.5


@room(
    "tenstorrent/tt-metal#pull-56789",
    "2026-09",
    kind="self-attention",
    named="number of heads",
)
class ScaledByTheHeads(Sound):
    """A tutorial on CLIP divided by the root of the number of heads.

    Its comment said: of the heads' width. It still chose the right caption,
    so that nobody looked.
    """

    def scale(self):
        """The root of how many heads there are."""
        return self.n_heads**0.5


@room(
    "reczoo/FuxiCTR#30",
    "2022-06",
    kind="self-attention",
    named="both without transpose",
)
class CutWithoutTranspose(Sound):
    """Heads were cut by view alone, and so were they joined.

    Each head got some of the tokens whole, instead of a part of all.
    """

    def split(self, x):
        """View it as if the heads were an axis before the tokens."""
        return x.view(len(x), self.n_heads, -1, self.head_dim)

    def merge(self, x):
        """View it back."""
        return x.reshape(len(x), -1, self.d_model)


@room(
    "jsbaan/transformer-from-scratch#pull-6",
    "2026-03",
    kind="self-attention",
    named="merged without transpose",
)
class MergedWithoutTranspose(Sound):
    """The heads were joined by reshape alone, and tokens got mixed.

    The task in its tests, to copy, had been too easy to tell.
    """

    def merge(self, x):
        """Reshape without moving the axes back."""
        return x.reshape(len(x), -1, self.d_model)


@room(
    "ethen8181/machine-learning#13",
    "2021-05",
    kind="self-attention",
    named="no scale",
)
class NeverScaled(Sound):
    """A reader found that the scale was missing from a tutorial's class."""

    def scale(self):
        """None."""
        return 1.0


@room(
    "meta-pytorch/torchtune#1791",
    "2024-10",
    kind="self-attention",
    named="dropout that never ends",
)
class DroppedInUse(Sound):
    """Dropout went into PyTorch's function also when the model was in use.

    That function cannot know; the docstring had promised that it did. The
    same was found in timm, in nanoGPT and elsewhere.
    """

    def attend(self, q, k, v):
        """Drop weights, training or not."""
        return F.scaled_dot_product_attention(q, k, v, dropout_p=0.1)


@room(
    "rasbt/LLMs-from-scratch#857",
    "2025-09",
    kind="self-attention",
    named="matrices of the input transposed",
)
class MatricesTransposed(Sound):
    """An einsum read matrices the other way round than they were made.

    As long as they were square, nothing showed.
    """

    def forward(self, x):
        """Multiply by the transposed weights."""
        q, k, v = (
            torch.einsum("bnd,di->bni", x, W.weight) + W.bias
            for W in (self.W_q, self.W_k, self.W_v)
        )
        heads = self.attend(self.split(q), self.split(k), self.split(v))
        return self.W_o(self.merge(heads))
