"""Positions in what enters the layer: a vector to add to each token."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from selfattn.checks import check_number
from selfattn.signatures import Count, Offset, Positive, checked


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

    Reference: Vaswani et al. (2017), section 3.5.

    >>> sinusoidal(2, 3)
    tensor([[0.0000, 1.0000, 0.0000],
            [0.8415, 0.5403, 0.0022]])
    """
    frequency = frequencies(d_model, base, device)  # (⌈d/2⌉,)
    position = torch.arange(offset, offset + n, device=device)
    angle = position[:, None] * frequency  # (n, ⌈d/2⌉)
    waves = torch.stack((angle.sin(), angle.cos()), dim=-1)
    return waves.flatten(-2)[:, :d_model].float()


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
    n: int, d: int, first: int, device: torch.device
) -> Float[Tensor, "n d"]:
    """The rows of `sinusoidal` from a distance on, in float64, (n, d)."""
    distance = torch.arange(first, first + n, device=device)
    angle = distance[:, None] * frequencies(d, 10_000.0, device)
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
