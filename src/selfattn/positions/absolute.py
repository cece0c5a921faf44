"""Positions in what enters the layer: a vector to add to each token."""

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn

from selfattn.checks import check_number
from selfattn.signatures import Count, Offset, Positive, checked

MOST = 2**32  # of an angle: float64 is off by a millionth there, at most


@checked
def sinusoidal(
    n: Count,
    d_model: Positive,
    *,
    base: float | int = 10_000.0,
    offset: Offset = 0,
    device: torch.device | str | None = None,
) -> Float[Tensor, "n d_model"]:
    """The position table of the Transformer: sines beside cosines.

    Feature 2i of position p is sin(p base^(-2i/d_model)), feature 2i + 1 the
    cosine of the same angle. An odd last feature is a sine without a cosine.

    Args:
        n: number of positions.
        d_model: width of the table; may be odd.
        base: the larger, the slower the last features turn.
        offset: position of the first row.
        device: where to make the table.

    Returns:
        The table in float32, (n, d_model), computed in float64: in float32
        the angles themselves are wrong in the fourth place at position 5000.

    Raises:
        ValueError: if the base is not positive, or if an angle is so large,
            by a small base or a position far away, that float64 has too few
            digits left to turn by it.

    Reference: Vaswani et al. (2017), section 3.5.

    >>> sinusoidal(2, 3)
    tensor([[0.0000, 1.0000, 0.0000],
            [0.8415, 0.5403, 0.0022]])
    """
    return waves(n, d_model, offset, device, base).float()


def angles(
    n: int,
    d: int,
    offset: int,
    base: float | int = 10_000.0,
    device: torch.device | str | None = None,
) -> Float[Tensor, "n pairs"]:
    """The angle of each pair of features at each position, float64.

    Raises:
        ValueError: if the base is none, or an angle too large.
    """
    frequency = frequencies(d, base, device)  # (⌈d/2⌉,)
    check_angles(n, d, offset, base)
    position = torch.arange(offset, offset + n, device=device)
    return position[:, None] * frequency  # (n, ⌈d/2⌉)


def check_angles(n: int, d: int, offset: int, base: float | int) -> None:
    """Raise if an angle is too large to turn by it. Not asked while a model
    is traced for all lengths.
    """
    known = isinstance(n, int) and isinstance(offset, int)
    furthest = max(1, abs(offset), abs(offset + n - 1)) if known else 1
    if base >= 1 and furthest <= MOST:
        return
    # By logarithms: of a base next to 0, a frequency is infinite.
    last = (d - 1) // 2 * 2  # that of the fastest pair, if base < 1
    fastest = max(0.0, -math.log(base)) * last / max(1, d)
    if math.log(furthest) + fastest > math.log(MOST):
        raise ValueError(
            f"angles must be at most {MOST}, beyond which float64 has too few "
            "digits to turn by them, but p · base^(-2i/d) is larger, for "
            f"base={base}, d={d} and positions from {offset} to "
            f"{offset + n - 1}"
        )


def frequencies(
    d: int, base: float | int, device: torch.device | str | None = None
) -> Float[Tensor, " pairs"]:
    """Angle per position of each pair of features, base^(-2i/d), float64."""
    check_number("base", base)
    if base <= 0:
        raise ValueError(f"base must be larger than 0, but it is {base}")
    pair = torch.arange(0, d, 2, device=device, dtype=torch.float64)
    return base ** (-pair / d)


def waves(
    n: int,
    d: int,
    first: int,
    device: torch.device | str | None,
    base: float | int = 10_000.0,
) -> Float[Tensor, "n d"]:
    """The rows of `sinusoidal` from one on, in float64, (n, d)."""
    angle = angles(n, d, first, base, device)
    both = torch.stack((angle.sin(), angle.cos()), dim=-1)
    return both.flatten(-2)[:, :d]


class LearnedPositions(nn.Module):
    """A vector to learn for each position, up to a length fixed in advance.

    Args:
        max_length: the number of positions that have a vector.
        d_model: width of the vectors.

    Reference: Gehring et al. (2017), section 3.1; Devlin et al. (2019).

    >>> LearnedPositions(max_length=8, d_model=6)(3).shape
    torch.Size([3, 6])
    """

    @checked
    def __init__(self, max_length: Positive, d_model: Positive):
        """Start small, so that tokens outweigh positions at first."""
        super().__init__()
        self.table = nn.Parameter(0.02 * torch.randn(max_length, d_model))

    @checked
    def forward(
        self, n: Count, *, offset: Offset = 0
    ) -> Float[Tensor, "{n} d_model"]:
        """The vectors of positions offset … offset + n - 1, (n, d_model).

        Raises:
            ValueError: for a position that has no vector.
        """
        max_length = self.table.shape[0]
        if min(n, offset) < 0 or offset + n > max_length:
            raise ValueError(
                f"positions 0 to {max_length - 1} have a learned vector, and "
                f"no others, but offset={offset} and n={n} ask for "
                f"{offset} to {offset + n - 1}"
            )
        # A copy: whoever adds to it in place would change the table.
        return self.table[offset : offset + n].clone()
