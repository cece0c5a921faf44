"""What weights a mechanism has, seen by values of which one alone is not zero.

Whatever it saves, what it says of one-hot values are its weights. Beside the
powers of the scores they tell which mistake was made, whatever the size of
its tiles: by a factor that changes from one tile to the next, or by a share
that is lost.
"""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from selfattn.doctor.exercise import Mistake, name_of, unspoken
from selfattn.doctor.exercises.dot_product import attention as functions
from selfattn.doctor.kinds.efficient import masks_seen, powers_seen
from selfattn.doctor.kinds.efficient.feature_maps import Maps
from selfattn.doctor.kinds.efficient.mistakes import kernels, tiles
from selfattn.doctor.probes import numbers

Table = Callable[[int, int], Tensor]
N, D = 131, 20  # keys, of which no tile holds a part; and features
NEAR = 1e-2  # of logarithms, and of counts
MOST = 0.6  # of the keys begin another tile, where there are tiles

KNOWN = (
    *masks_seen.KNOWN,
    *powers_seen.KNOWN,
    *map(
        unspoken,
        (
            tiles.each_tile_has_its_own_softmax,
            tiles.nothing_is_rescaled,
            tiles.zeros_fill_the_last_tile,
            tiles.never_divided,
            functions.mask_after_softmax,
            kernels.not_divided,
        ),
    ),
)


def hint(
    attend: Callable[..., Any],
    past: Table | None,
    kernel: Maps | None = None,
    others: dict[str, Mistake] | None = None,
) -> str:
    """The name of what its weights tell; "" if they tell nothing.

    Args:
        attend: of q, k and v, (texts, heads, tokens, features).
        past: of n_q and n_k, which keys each query may see; None: all.
        kernel: the feature maps that it claims; None: it has a softmax.
        others: see `masks_seen.hint`; None: masks are another matter.
    """
    may = torch.ones(N, N).bool() if past is None else past(N, N)
    q, k = (numbers(1, 1, N, D, seed=s) for s in (21, 22))
    with torch.no_grad():
        weights = of_one_hot(attend, q, k)
    if len(weights) != N:
        return of_lost_tokens(attend, q, k, others)
    scores = (q @ k.mT / D**0.5)[0, 0]
    logs = scores if kernel is None else of_features(kernel, q, k)
    if others is not None:
        seen = masks_seen.hint(weights, logs, may, others)
        if seen:
            return seen
    if not bool((weights[may] != 0).all()) or bool(weights[~may].any()):
        return ""  # it does not see what it may, which is another matter
    if kernel is not None:
        same = torch.allclose(weights[may], logs.exp()[may], rtol=NEAR)
        return name_of(kernels.not_divided) if same else ""
    found = powers_seen.hint(weights, scores, may, D)
    if found or bool((weights[may] < 0).any()):
        return found
    return of_factors(weights, scores, may)


def of_features(kernel: Maps, q: Tensor, k: Tensor) -> Tensor:
    """The logarithms of what feature maps make of each query and key."""
    made: Tensor = kernel.of_q(q) @ kernel.of_k(k).mT
    return made[0, 0].log()


def of_lost_tokens(
    attend: Callable[..., Any],
    q: Tensor,
    k: Tensor,
    others: dict[str, Mistake] | None,
) -> str:
    """Which outputs are missing: the last ones, or the first.

    With other queries in the end, what is said of the first tells which.
    """
    if others is None:
        return ""
    v, other = k.clone(), q.clone()
    other[..., -1, :] += 1.0
    with torch.no_grad():
        one, two = (attend(x, k, v) for x in (q, other))
    if len(one[0, 0]) > N or not len(one[0, 0]):
        return ""
    heard = bool((one[0, 0, -1] != two[0, 0, -1]).any())
    return name_of(others["first"] if heard else tiles.last_tile_left_out)


def of_one_hot(attend: Callable[..., Any], q: Tensor, k: Tensor) -> Tensor:
    """The weights, (queries, keys), as many keys at once as features."""
    pieces = []
    one_hot = F.pad(torch.eye(N), (0, -N % D))
    for values in one_hot.split(D, dim=-1):
        said: Tensor = attend(q, k, values[None, None].contiguous())
        pieces.append(said[0, 0])
    return torch.cat(pieces, dim=-1)[:, :N]


def of_factors(weights: Tensor, scores: Tensor, may: Tensor) -> str:
    """By which factor each weight is another than the power of its score."""
    factor = (weights.log() - scores).masked_fill(~may, 0.0)
    pairs = may[:, 1:] & may[:, :-1]
    apart = (factor.diff(dim=-1).abs() > NEAR) & pairs
    begins = apart.any(dim=0)
    if not begins.any():
        return of_rows(weights, scores.exp(), may)
    if begins.double().mean() > MOST:
        return ""
    own = begins.nonzero().flatten() + 1
    pieces = weights[-1].tensor_split(own.tolist())
    sums = torch.stack([one.sum() for one in pieces])[:-1]
    even = bool((sums - sums[0]).abs().max() < NEAR * sums[0])
    return name_of(
        tiles.each_tile_has_its_own_softmax
        if even
        else tiles.nothing_is_rescaled
    )


def of_rows(weights: Tensor, powers: Tensor, may: Tensor) -> str:
    """Which share of a row is lost, if its weights are otherwise right."""
    total = (powers * may).sum(dim=-1)
    if torch.allclose(weights[may], powers[may], rtol=NEAR):
        return name_of(tiles.never_divided)
    lost = total * (1 / weights.sum(dim=-1) - 1)
    rows = lost > NEAR * total
    if not rows.any():
        return ""
    hidden = (powers * ~may).sum(dim=-1)
    if torch.allclose(lost, hidden, rtol=NEAR, atol=NEAR):
        return name_of(functions.mask_after_softmax)
    many = lost[rows]
    if bool(((many - many.round()).abs() < NEAR * (1 + many)).all()):
        return name_of(tiles.zeros_fill_the_last_tile)
    return ""
