"""The lab of the chapter on devices: three ways to share attention out.

The reader chooses how many ranks there are, the tokens, the heads and the
link between the ranks, and sees for each way what a rank sends and holds in
one forward pass of one layer's attention, or why the way is closed. The
tests count the same with the package's functions.
"""

from typing import NamedTuple

from matplotlib.figure import Figure

from selfattn.labs.machinery.lab import Lab
from selfattn.labs.machinery.settings import Choice
from selfattn.plots import colours

RANKS = [2**e for e in range(11)]  # 1 … 1,024
LENGTHS = [2**e for e in range(10, 21)]  # 1,024 … 1,048,576
BYTES = 2  # of a number in half precision
WAYS = {"heads": "heads dealt out", "ring": "ring", "swap": "all-to-all"}
# What the makers state, in gigabytes a second, each way.
LINKS = {"NVLink": 450.0, "InfiniBand": 50.0, "Ethernet": 1.25}
LOOKS = {
    "heads": colours.Q,
    "ring": colours.K,
    "swap": colours.V,
}


class Share(NamedTuple):
    """What one rank has to do with one way; None where it is closed."""

    sent: int | None  # bytes that leave it
    held: int | None  # bytes of its tokens, and what is on its way: the least
    seconds: float | None  # that its bytes take on the link
    refused: str  # why the way is closed, or nothing


class DevicesLab(Lab):
    """What a rank sends and holds, three ways, by the sizes.

    Attributes:
        ranks: how many devices there are.
        n: tokens in the sequence.
        n_heads: heads of the layer.
        d_head: features of a head.
        link: "NVLink", "InfiniBand" or "Ethernet".
    """

    ranks = Choice(4, RANKS)
    n = Choice(131072, LENGTHS)
    n_heads = Choice(32, [8, 12, 32, 40, 64, 128])
    d_head = Choice(128, [64, 128])
    link = Choice("NVLink", list(LINKS))

    def shares(self) -> dict[str, Share]:
        """What a rank has to do, each way."""
        return shares(**self.values())

    def describe(self) -> str:
        """The numbers of the picture in words."""
        told = [
            f"{WAYS[way]}: {share.refused}"
            if share.refused
            else f"{WAYS[way]}: {share.sent:.3g} bytes sent and at least "
            f"{share.held:.3g} held"
            for way, share in self.shares().items()
        ]
        return (
            "Two bars for each of three ways, what a rank sends and what it "
            f"holds. With {self.ranks} ranks and {self.n:,} tokens: "
            f"{'; '.join(told)}."
        )

    def figure(self) -> Figure:
        """What a rank sends, and what it holds, each way."""
        figure = Figure(figsize=(5.4, 2.9), layout="constrained")
        ax = figure.subplots()
        for place, (way, share) in enumerate(self.shares().items()):
            sizes = [share.sent or 0, share.held or 0]
            rows = [place - 0.2, place + 0.2]
            bars = ax.barh(rows, sizes, height=0.36, color=LOOKS[way])
            bars[1].set_alpha(0.4)
            if share.refused:
                ax.text(2e3, place, share.refused, va="center", size=8)
        ax.set_yticks(range(len(WAYS)), WAYS.values())
        ax.set_xscale("log")
        ax.set(
            xlim=(1e3, 1e12),
            xlabel="bytes of a rank: sent, held at least (faint)",
        )
        ax.invert_yaxis()
        return figure


def shares(
    *, ranks: int, n: int, n_heads: int, d_head: int, link: str
) -> dict[str, Share]:
    """What a rank sends and holds in one forward pass, one sequence.

    A piece is one rank's part of x, or q, or k, or v, or the output o, or y.
    What a rank holds is the least that it can do with.
    """
    piece = BYTES * (n // ranks) * n_heads * d_head
    uneven = n_heads % ranks != 0
    closed = f"{n_heads} heads do not divide among {ranks} ranks"
    sent = {
        "heads": 2 * (ranks - 1) * piece,  # one all-reduce, in a ring
        "ring": 2 * (ranks - 1) * piece,  # keys and values, hop by hop
        "swap": 4 * (ranks - 1) * piece // ranks,  # q, k, v and the output
    }
    held = {
        "heads": (2 * ranks + 4) * piece,  # all of x and y; its heads' q … o
        # x, y, q … o; from two ranks on a block that comes, from three on
        # one that goes and is not its own.
        "ring": (6 + 2 * (min(ranks, 3) - 1)) * piece,
        "swap": (6 + 4 * (ranks > 1)) * piece,  # q … o, twice: its heads'
    }
    rate = LINKS[link] * 1e9
    return {
        way: Share(None, None, None, closed)
        if uneven and way != "ring"
        else Share(sent[way], held[way], sent[way] / rate, "")
        for way in WAYS
    }
