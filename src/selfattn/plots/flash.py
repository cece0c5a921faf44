"""Figures of the page on FlashAttention."""

from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from selfattn.plots.colours import NEUTRAL, K, Q


def tiles(
    ax: Axes, *, n: int, block_q: int, block_k: int, causal: bool
) -> list[list[int]]:
    """The tiles of an n x n table, numbered in the order of their visit.

    A tile in which something is hidden is lighter; one that is skipped is
    empty.

    Args:
        ax: where to draw.
        n: how many queries, and keys.
        block_q: how many queries a tile has.
        block_k: how many keys a tile has.
        causal: whether the future is hidden.

    Returns:
        For each block of queries, the numbers of its tiles.
    """
    visited: list[list[int]] = []
    number = 0
    for top in range(0, n, block_q):
        bottom = min(top + block_q, n)
        visited.append([])
        for left in range(0, n, block_k):
            right = min(left + block_k, n)
            size = (left, top), right - left, bottom - top
            ax.add_patch(Rectangle(*size, fill=False, ec="0.8"))
            if causal and left >= bottom:
                continue
            number += 1
            visited[-1].append(number)
            part = causal and right > top + 1
            shade = 0.25 if part else 0.55
            ax.add_patch(Rectangle(*size, fc=NEUTRAL, alpha=shade, ec="none"))
            middle = (left + right) / 2, (top + bottom) / 2
            ax.text(*middle, str(number), ha="center", va="center")
    ax.set(xlim=(0, n), ylim=(n, 0), xticks=[], yticks=[], aspect="equal")
    ax.set_xlabel("key", color=K)
    ax.set_ylabel("query", color=Q)
    return visited
