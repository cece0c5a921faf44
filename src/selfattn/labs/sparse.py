"""The lab of the page on sparse patterns: who sees whom, and by way of whom.

Sixteen tokens. The reader chooses the pattern, its stride, a query and a key,
and sees which pairs are looked at, and through which tokens what the key says
can reach the query in the layer after.
"""

from typing import NamedTuple

from jaxtyping import Bool
from matplotlib.figure import Figure
from torch import Tensor

from selfattn.efficient.sparse import fixed_mask, strided_mask
from selfattn.labs.machinery.lab import Lab
from selfattn.labs.machinery.settings import Choice, Flag, Whole
from selfattn.masks import causal_mask
from selfattn.plots.colours import K

N = 16
PATTERNS = {"strided": strided_mask, "fixed": fixed_mask}


class Routes(NamedTuple):
    """Who sees whom, and how the query reaches each key."""

    seen: list[list[bool]]  # (16, 16): by a row's query, of each key
    steps: list[int]  # to each key: 1 or 2, and 0 if neither will do
    ways: list[int]  # the tokens between the query and the key, each alone
    pairs: int  # that are looked at
    full: int  # that would be without a pattern


class SparseLab(Lab):
    """A pattern, and the ways from one query to one key.

    Attributes:
        pattern: strided, or fixed.
        stride: of either.
        causal: whether nobody sees what comes later.
        query: who looks, from 0.
        key: at whom, from 0.
    """

    pattern = Choice("strided", [*PATTERNS])
    stride = Whole(4, 1, N)
    causal = Flag(True)
    query = Whole(N - 1, 0, N - 1)
    key = Whole(1, 0, N - 1)

    def state(self) -> Routes:
        """What the page shows, computed by the package."""
        return state(**self.values())

    def describe(self) -> str:
        """The numbers of the picture in words."""
        now = self.state()
        direct, more = now.steps.count(1), now.steps.count(2)
        return (
            f"A grid of 16 queries down and 16 keys across, the pattern "
            f"{self.pattern} with a stride of {self.stride}: {now.pairs} of "
            f"{now.full} pairs are looked at. Query {self.query + 1} sees "
            f"{direct} keys and reaches {more} more in two steps."
        )

    def figure(self) -> Figure:
        """The grid, the first query at the top."""
        figure = Figure(figsize=(3.4, 3.4), layout="constrained")
        ax = figure.subplots()
        for i, row in enumerate(self.state().seen):
            here = [j + 1 for j, sees in enumerate(row) if sees]
            alpha = 1 if i == self.query else 0.5
            size = [0.8] * len(here)
            ax.bar(here, size, 0.8, i + 0.6, color=K, alpha=alpha)
        ax.set(xlim=(0.5, N + 0.5), ylim=(N + 0.5, 0.5))
        ax.set(xlabel="key", ylabel="query", aspect="equal")
        ax.set_xticks(range(1, N + 1, 3))
        ax.set_yticks(range(1, N + 1, 3))
        ax.spines[["top", "right"]].set_visible(False)
        return figure


def allowed(*, pattern: str, stride: int, causal: bool) -> Bool[Tensor, "n n"]:
    """Who may look at whom."""
    mask = PATTERNS[pattern](N, N, stride)
    return mask & causal_mask(N, N) if causal else mask


def state(
    *, pattern: str, stride: int, causal: bool, query: int, key: int
) -> Routes:
    """Follow the query's looks, once and twice; see `SparseLab`."""
    seen = allowed(pattern=pattern, stride=stride, causal=causal)
    twice = (seen[query][:, None] & seen).any(dim=0)
    steps = [
        1 if once else 2 if then else 0
        for once, then in zip(seen[query], twice, strict=True)
    ]
    between = seen[query] & seen[:, key]
    ways = between.nonzero().flatten().tolist()
    return Routes(
        seen.tolist(),
        steps,
        [m for m in ways if m not in (query, key)],
        int(seen.sum()),
        N * (N + 1) // 2 if causal else N * N,
    )
