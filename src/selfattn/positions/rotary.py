"""Positions in queries and keys: RoPE, in both orders of the features."""

import torch
from jaxtyping import Float
from torch import Tensor

from selfattn.checks import check_floats
from selfattn.positions.absolute import angles
from selfattn.signatures import Offset, checked

Features = Float[Tensor, "*batch n d"]


@checked
def rope(
    x: Features, *, base: float | int = 10_000.0, offset: Offset = 0
) -> Features:
    """RoPE as in its paper: rotate each pair of neighbouring features.

    Features 2i and 2i + 1 of the token at position p turn by the angle
    p base^(-2i/d). The product of a rotated query with a rotated key then
    depends on their contents and on how far apart they are.

    Args:
        x: queries or keys of one head, (..., n, d), with d even.
        base: how slowly the last pair turns.
        offset: position of the first token.

    Returns:
        A new tensor, (..., n, d).

    Raises:
        ValueError: if d is odd, x holds no floating-point numbers, or the
            base is not positive; or if an angle is so large, by a small base
            or a position far away, that float64 cannot turn by it.

    Reference: Su et al. (2021), section 3.2.2.

    >>> x = torch.tensor([[1.0, 0.0], [1.0, 0.0]])
    >>> rope(x)
    tensor([[1.0000, 0.0000],
            [0.5403, 0.8415]])
    """
    cos, sin = turns(x, base, offset)
    a, b = x[..., 0::2], x[..., 1::2]
    turned = torch.stack((a * cos - b * sin, a * sin + b * cos), dim=-1)
    return turned.flatten(-2)


@checked
def rope_halves(
    x: Features, *, base: float | int = 10_000.0, offset: Offset = 0
) -> Features:
    """RoPE as in GPT-NeoX and Transformers: rotate feature i with i + d/2.

    The same rotation as `rope`, with the features in another order: see
    `pairs_to_halves`. Arguments, shapes and errors are those of `rope`.

    Reference: Black et al. (2022), section 2.1.

    >>> x = torch.tensor([[1.0, 0.0], [1.0, 0.0]])
    >>> torch.equal(rope_halves(x), rope(x))  # two features make one pair
    True
    """
    cos, sin = turns(x, base, offset)
    a, b = x.chunk(2, dim=-1)
    return torch.cat((a * cos - b * sin, a * sin + b * cos), dim=-1)


def turns(x: Tensor, base: float | int, offset: int) -> tuple[Tensor, Tensor]:
    """Cosine and sine of each position's angles, (n, d/2), like x.

    Raises:
        ValueError: if x has an odd number of features or holds no
            floating-point numbers, or if the base is not positive, or so
            small that an angle is too large.
    """
    check_floats("x", x)
    n, d = x.shape[-2:]
    check_even(x)
    angle = angles(n, d, offset, base, x.device)
    return angle.cos().to(x.dtype), angle.sin().to(x.dtype)


@checked
def pairs_to_halves(
    x: Float[Tensor, "*batch d"],
) -> Float[Tensor, "*batch d"]:
    """Reorder features from `rope`'s pairs to `rope_halves`'s halves.

    Features (0, 1, 2, 3, …) become (0, 2, …, 1, 3, …). For the weights of a
    projection, reorder the rows of each head: they make the features.

    Raises:
        ValueError: if the number of features is odd.

    >>> pairs_to_halves(torch.tensor([0.0, 1.0, 2.0, 3.0]))
    tensor([0., 2., 1., 3.])
    """
    check_even(x)
    return torch.cat((x[..., 0::2], x[..., 1::2]), dim=-1)


@checked
def halves_to_pairs(
    x: Float[Tensor, "*batch d"],
) -> Float[Tensor, "*batch d"]:
    """Undo `pairs_to_halves`.

    >>> halves_to_pairs(torch.tensor([0.0, 2.0, 1.0, 3.0]))
    tensor([0., 1., 2., 3.])
    """
    check_even(x)
    return torch.stack(x.chunk(2, dim=-1), dim=-1).flatten(-2)


def check_even(x: Tensor) -> None:
    """Raise unless the last axis can be cut into pairs."""
    if x.shape[-1] % 2:
        raise ValueError(
            "features come in pairs, so their number must be even, but x is "
            f"{tuple(x.shape)}"
        )
