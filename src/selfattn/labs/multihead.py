"""The lab of the chapter on heads.

The reader chooses how wide a layer is, how many heads it has, and how many of
them share keys, and sees what follows: the shapes on the way through, the
parameters, the bytes of the cache, and where every head looks.
"""

import functools

import torch
from matplotlib.figure import Figure
from torch import Tensor

from selfattn.labs.dot_product import WORDS
from selfattn.labs.machinery.lab import Lab
from selfattn.labs.machinery.park_miller import fixed_numbers
from selfattn.labs.machinery.settings import Choice, Whole
from selfattn.multihead import MultiHeadAttention, merge_heads, split_heads

KINDS = {"x": 3, "W_q": 4, "W_k": 5, "W_v": 6, "W_o": 7}
CACHED = 2  # bytes of a cached number, in half precision
MOST_HEADS = 12
HEADS = list(range(1, MOST_HEADS + 1))


class MultiheadLab(Lab):
    """A layer of several heads, with fixed numbers for weights.

    Attributes:
        d_model: features of a token.
        n_heads: query heads; they divide d_model.
        n_kv_heads: key and value heads; they divide the query heads.
        n: how many words of the sentence there are.
        head: whose weights are shown with their numbers, from 0.
    """

    d_model = Choice(48, [8, 12, 16, 24, 48, 64])
    n_heads = Choice(4, HEADS, divides="d_model")
    n_kv_heads = Choice(4, HEADS, divides="n_heads")
    n = Whole(6, 1, len(WORDS))
    head = Whole(0, 0, MOST_HEADS - 1, of="n_heads", plus=-1)

    def layer(self) -> MultiHeadAttention:
        """The package's layer with the lab's numbers, in float64."""
        return layer(self.d_model, self.n_heads, self.n_kv_heads)

    def weights(self) -> Tensor:
        """Where every head looks, (n_heads, n, n), by the package."""
        return self.layer().weights(self.x()[None])[0]

    def x(self) -> Tensor:
        """The words' vectors, (n, d_model)."""
        return table("x", self.n, self.d_model)

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of everything on the way, from a real run."""
        made, x = self.layer(), self.x()[None]
        q, k, v = made.heads(x)
        heads = made.attend(q, k, v)
        return {
            "x": tuple(x.shape),
            "queries": tuple(made.W_q(x).shape),
            "queries, split": tuple(q.shape),
            "keys": tuple(made.W_k(x).shape),
            "keys, split": tuple(
                split_heads(made.W_k(x), self.n_kv_heads).shape
            ),
            "keys, shared out": tuple(k.shape),
            "weights": tuple(made.weights(x).shape),
            "heads": tuple(heads.shape),
            "merged": tuple(merge_heads(heads).shape),
            "output": tuple(made(x).shape),
        }

    def parameters(self) -> int:
        """How many numbers the layer has, without biases."""
        return sum(p.numel() for p in self.layer().parameters())

    def cache_bytes(self) -> int:
        """What the keys and values of all words take, two bytes a number."""
        made, x = self.layer(), self.x()
        return CACHED * (made.W_k(x).numel() + made.W_v(x).numel())

    def describe(self) -> str:
        """The numbers of the picture in words."""
        best = [
            f"{head + 1}: {WORDS[int(i)]} → {WORDS[int(j)]} {table[i, j]:.3f}"
            for head, table in enumerate(self.weights())
            for i, j in [divmod(int(table.argmax()), self.n)]
        ]
        return (
            f"A heat map for each of {self.n_heads} heads, queries as rows "
            f"and keys as columns, over {self.n} words. The largest weight "
            f"of each head: {'; '.join(best)}. The layer has "
            f"{self.parameters():,} parameters and a cache of "
            f"{self.cache_bytes():,} bytes."
        )

    def figure(self) -> Figure:
        """One heat map a head."""
        heads = int(self.n_heads)
        columns = min(heads, 6)
        rows = -(-heads // columns)
        figure = Figure(figsize=(7.2, 2.1 * rows), layout="constrained")
        axes = figure.subplots(rows, columns, squeeze=False).flatten()
        group = heads // self.n_kv_heads
        for ax in axes[heads:]:
            ax.set_visible(False)
        for head, weights in enumerate(self.weights().tolist()):
            ax = axes[head]
            ax.imshow(weights, cmap="Greys", vmin=0, vmax=1)
            ax.set_title(f"head {head + 1}, keys {head // group + 1}", size=9)
            words = WORDS[: self.n]
            ax.set_xticks(range(self.n), words, rotation=90, size=7)
            ax.set_yticks(range(self.n), words if head % columns == 0 else [])
            ax.tick_params(axis="y", labelsize=7)
        axes[0].set(xlabel="key", ylabel="query")
        return figure


def layer(d_model: int, n_heads: int, n_kv_heads: int) -> MultiHeadAttention:
    """The package's layer with the fixed matrices, in float64.

    Raises:
        ValueError: if the heads do not divide evenly.
    """
    made = MultiHeadAttention(d_model, n_heads, n_kv_heads=n_kv_heads)
    made = made.double()
    for name in ("W_q", "W_k", "W_v", "W_o"):
        weight = getattr(made, name).weight
        fixed = table(name, d_model, len(weight)) * (1.25 / d_model**0.5)
        weight.data.copy_(fixed.T)
    return made.requires_grad_(requires_grad=False)


@functools.cache  # it never changes; nobody may change what it returns
def table(kind: str, rows: int, columns: int) -> Tensor:
    """Fixed numbers of variance one, (rows, columns), one start a row."""
    starts = [7919 * (row + 1) + 104729 * KINDS[kind] for row in range(rows)]
    made = [fixed_numbers(start, columns) for start in starts]
    return torch.tensor(made, dtype=torch.float64)
