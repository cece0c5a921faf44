"""Handwritten digits: the 1,797 small pictures that scikit-learn brings.

Each has 8 × 8 points, and no download is needed. It is the one task here
that was not generated but written, by 43 people.
"""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from selfattn.signatures import Seed, checked

N_PICTURES, SIDE, N_CLASSES = 1797, 8, 10


class Pictures(NamedTuple):
    """Pictures, and which digit each of them shows."""

    images: Float[Tensor, "n 8 8"]  # from 0, paper, to 1, ink
    labels: Int[Tensor, " n"]


@checked
def handwritten_digits(
    *, seed: Seed, n_test: int = 360
) -> tuple[Pictures, Pictures]:
    """Pictures to learn from, and others to be examined on.

    Args:
        seed: what the generator starts from that shuffles them.
        n_test: how many are kept back.

    Returns:
        Both parts, which share no picture.

    Raises:
        ValueError: if it is more than there are, or leaves none.

    Reference: Alpaydin and Kaynak (1998), through `sklearn.datasets`.

    >>> train, test = handwritten_digits(seed=0)
    >>> train.images.shape, test.labels.shape
    (torch.Size([1437, 8, 8]), torch.Size([360]))
    """
    # Imported here: scikit-learn is no part of what the package needs.
    from sklearn.datasets import load_digits  # type: ignore[import-untyped]

    if not 0 <= n_test < N_PICTURES:
        raise ValueError(
            f"of {N_PICTURES} pictures at least one must be left to learn "
            f"from, but n_test={n_test}"
        )
    loaded = load_digits()
    images = torch.from_numpy(loaded.images).float() / 16
    labels = torch.from_numpy(loaded.target).long()
    generator = torch.Generator().manual_seed(seed)
    order = torch.randperm(N_PICTURES, generator=generator, device="cpu")
    test, train = order[:n_test], order[n_test:]
    return (
        Pictures(images[train], labels[train]),
        Pictures(images[test], labels[test]),
    )
