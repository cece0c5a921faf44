"""Maps of one head's features, each head getting a piece of x.

As maps of the whole x they are blocks, side by side: a map for each head, or
one and the same for all.
"""

from collections.abc import Mapping

import torch
from torch import Tensor

from selfattn.doctor.kinds.layer.affine import Affine

THREE = ("q", "k", "v")


def of_whole(
    found: Mapping[str, Affine],
    n_heads: int,
    d_model: int | None,
    d_head: int | None,
) -> dict[str, Affine]:
    """Such maps as those of x; nothing, if they are no such.

    Args:
        found: the maps, by their part.
        n_heads: how many heads there are.
        d_model: the width of x, if a name tells it.
        d_head: that of a head, likewise.
    """
    if n_heads < 2 or not {*THREE} <= found.keys():
        return {}
    three = [found[part] for part in THREE]
    width = three[0].W.shape[0]
    if {one.W.shape for one in three} not in (
        {(width, width)},
        {(width, n_heads * width)},
    ):
        return {}
    whole = n_heads * width
    if d_model is None and (out := found.get("out")) is not None:
        d_model = out.W.shape[1] if out.W.shape[0] == whole else width
    if d_model is None:
        none_cut = width % n_heads and d_head is None
        d_model = whole if none_cut or d_head == width else width
    if d_model != whole:
        return {}
    return {part: in_blocks(found[part], n_heads) for part in THREE}


def in_blocks(one: Affine, n_heads: int) -> Affine:
    """A map for each head, side by side or the same, as a map of all."""
    times = n_heads * one.W.shape[0] // one.W.shape[1]
    b = None if one.b is None else one.b.repeat(times)
    blocks = one.W.repeat(1, times).chunk(n_heads, dim=1)
    W: Tensor = torch.block_diag(*blocks)
    return Affine(W, b, one.whole)
