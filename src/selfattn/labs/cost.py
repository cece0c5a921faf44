"""The lab of the chapter on cost: what a layer costs, and where it fits.

The reader chooses the sizes of one attention layer and a mechanism, and sees
the operations and bytes, and which GPU would hold them. The formulas are
those of the chapter; the tests count the same with the package's functions.
"""

import functools
from typing import Any, NamedTuple

from matplotlib.figure import Figure

from selfattn.labs.machinery.lab import Lab
from selfattn.labs.machinery.settings import Choice
from selfattn.plots import colours

LENGTHS = [2**e for e in range(7, 21)]  # 128 … 1,048,576
WINDOW, BLOCK = 256, 64  # keys to each side, and queries at a time
BYTES = {"float32": 4, "bfloat16": 2}
MECHANISMS = {
    "naive": "naive: two tables",
    "fused": "fused kernel",
    "window": f"window of {WINDOW}",
    "linear": "linear attention",
}
# What the makers state, in gigabytes of a thousand million bytes.
GPUS = {"T4": 16, "RTX 4090": 24, "A100, H100": 80, "H200": 141, "B200": 192}


class Plan(NamedTuple):
    """What one layer costs in one forward pass, without gradients."""

    projection_flops: int  # of the four projections
    mechanism_flops: int  # of attention itself
    parameter_bytes: int  # of the four matrices
    token_bytes: int  # of x, queries, keys and values
    mechanism_bytes: int  # of all that grows with n, the output included

    @property
    def flops(self) -> int:
        """All operations."""
        return self.projection_flops + self.mechanism_flops

    @property
    def bytes(self) -> int:
        """All bytes."""
        return self.parameter_bytes + self.token_bytes + self.mechanism_bytes


class CostLab(Lab):
    """Operations and bytes of one attention layer, by its sizes.

    Attributes:
        n: tokens in a sequence.
        d_model: features of a token.
        n_heads: how many heads; they divide d_model.
        batch: sequences at a time.
        dtype: "float32" or "bfloat16".
        mechanism: "naive", "fused", "window" (of 256 keys to each side) or
            "linear".
    """

    n = Choice(2048, LENGTHS)
    d_model = Choice(768, [256, 512, 768, 1024, 4096])
    n_heads = Choice(12, [1, 4, 8, 12, 16, 32], divides="d_model")
    batch = Choice(16, [1, 4, 16, 64, 256])
    dtype = Choice("float32", list(BYTES))
    mechanism = Choice("naive", list(MECHANISMS))

    def plan(self) -> Plan:
        """What this layer costs."""
        return plan(**self.values())

    def fits(self) -> dict[str, bool]:
        """Which GPUs could hold the layer's bytes."""
        return fits(self.plan().bytes)

    def shown(self) -> dict[str, Any]:
        """All settings: each of them is a factor."""
        return self.values()

    def describe(self) -> str:
        """The numbers of the picture in words."""
        made = self.plan()
        where = [name for name, does in self.fits().items() if does]
        return (
            "Bytes against the number of tokens, both by powers, one line a "
            f"mechanism. At {self.n:,} tokens, {MECHANISMS[self.mechanism]}: "
            f"{made.flops:.3g} operations and {made.bytes:.3g} bytes, which "
            f"fit on {'; '.join(where) or 'none of the GPUs'}."
        )

    def figure(self) -> Figure:
        """The bytes of every mechanism, by length, and the present one."""
        figure = Figure(figsize=(6.4, 3.8), layout="constrained")
        ax = figure.subplots()
        for mechanism, colour in LINES.items():
            each = self.values() | {"mechanism": mechanism}
            sizes = [plan(**(each | {"n": n})).bytes for n in LENGTHS]
            ax.loglog(LENGTHS, sizes, color=colour, label=mechanism, base=2)
        ax.plot(self.n, self.plan().bytes, "o", color=colours.OUTPUT)
        for place, (name, gb) in enumerate(GPUS.items()):
            ax.axhline(gb * 10**9, color=colours.NEUTRAL, lw=0.6, ls=":")
            left = LENGTHS[3 * (place % 2)]  # neighbours would collide
            ax.text(left, gb * 10**9, name, size=7, va="bottom")
        ax.set_yscale("log", base=10)
        ax.set(xlabel="tokens n", ylabel="bytes")
        ax.legend(frameon=False, loc="lower right")
        return figure


LINES = {
    "naive": colours.K,
    "fused": colours.Q,
    "window": colours.V,
    "linear": colours.NEUTRAL,
}


def plan(
    *,
    n: int,
    d_model: int,
    n_heads: int,
    batch: int,
    dtype: str,
    mechanism: str,
) -> Plan:
    """Operations and bytes of one layer, by the chapter's formulas."""
    word, numbers = BYTES[dtype], batch * n * d_model
    rows = batch * n_heads * n
    pairs = pairs_seen(mechanism, n, d_model // n_heads)
    extra = extra_bytes(mechanism, rows, n, word)
    return Plan(
        projection_flops=8 * numbers * d_model,
        mechanism_flops=4 * batch * d_model * pairs,
        parameter_bytes=4 * d_model**2 * word,
        token_bytes=4 * numbers * word,
        mechanism_bytes=numbers * word + extra,
    )


def pairs_seen(mechanism: str, n: int, d: int) -> int:
    """How many pairs of tokens a mechanism multiplies, or what equals it."""
    return {
        "naive": n * n,
        "fused": n * n,
        "window": window_pairs(n),
        "linear": n * d,  # features times values; the divisor is no product
    }[mechanism]


def extra_bytes(mechanism: str, rows: int, n: int, word: int) -> int:
    """What a mechanism holds beside its output, of all that grows with n."""
    return {
        "naive": 2 * rows * n * word,  # scores, and weights
        "fused": 4 * rows,  # one float32 a row: the log of its sum
        "window": 0,
        "linear": 4 * rows,  # one float32 a row: what it is divided by
    }[mechanism]


def fits(needed: int) -> dict[str, bool]:
    """Which GPUs have as many bytes as are needed."""
    return {name: needed <= gb * 10**9 for name, gb in GPUS.items()}


@functools.cache
def window_pairs(n: int) -> int:
    """Scores that `sliding_window_attention` computes: whole blocks."""
    return sum(
        BLOCK * (min(n, start + BLOCK + WINDOW) - max(0, start - WINDOW))
        for start in range(0, n, BLOCK)
    )
