"""Masks for the future, and for padding."""

import torch

from selfattn.doctor.museum.entry import room


@room(
    "pytorch/pytorch#108108",
    "2023-08",
    kind="causal-mask",
    named="first on first",
    mask="keep",
    alignment="last",
)
def top_left(n_q, n_k):
    """is_causal=True lays the first query on the first key.

    With a cache, a new word then sees the first word alone. It was proposed
    to change it; there is an object for either way today.
    """
    return torch.ones(n_q, n_k, dtype=torch.bool).tril(diagonal=0)


@room(
    "hkproj/pytorch-transformer#19",
    "2024-02",
    kind="causal-mask",
    named="upside down",
    mask="ones",
)
def lower_triangle_hidden(size):
    """In training the future was hidden; in a script to translate, the past.

    One file compared the triangle with 0, and the other did not.
    """
    return torch.triu(torch.ones(1, size, size), diagonal=1)


@room(
    "pytorch/pytorch#27968",
    "2019-10",
    kind="padding-mask",
    named="upside down",
    mask="block",
    axes="BN",
)
def lengths_to_mask(lengths, n):
    """Whoever answered the report made the mask the other way round.

    key_padding_mask is True where padding is.
    """
    return torch.arange(n) < lengths[:, None]
