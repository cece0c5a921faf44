"""Looking inside: what an attention attends to, and when something is wrong.

What is here is read off *weights*, (..., n_q, n_k), as `attention_weights` and
`record_weights` give them: after softmax, before dropout. What single heads
do is in `single_heads`, what can be read off their vectors in `probing`.
"""

import math
from collections.abc import Mapping

import torch
from jaxtyping import Float, Int
from torch import Tensor

from selfattn.checks import (
    are_at_hand,
    check_broadcasts,
    check_places,
    check_tables,
    check_tensor,
)
from selfattn.dot_product import widen
from selfattn.probing import Probe as Probe
from selfattn.signatures import checked, shown
from selfattn.single_heads import change_heads as change_heads
from selfattn.single_heads import heads_of as heads_of
from selfattn.single_heads import record_heads as record_heads
from selfattn.single_heads import record_weights as record_weights

Weights = Float[Tensor, "*batch n_q n_k"]
PerQuery = Float[Tensor, "*batch n_q"]

ROUNDED = 0.01  # a row that was bfloat16 once is off by less, in any type


@checked
def row_sums(weights: Weights) -> PerQuery:
    """What the weights of each query add up to.

    It is 1, and 0 for a query that may see no key. A softmax over the wrong
    axis still gives a *mean* of 1 over a square of weights: look at each row.

    Args:
        weights: (..., n_q, n_k).

    Returns:
        One sum a query, (..., n_q).

    >>> row_sums(torch.tensor([[0.5, 0.5], [0.0, 0.0]]))
    tensor([1., 0.])
    """
    return weights.sum(dim=-1)


@checked
def peaks(weights: Weights) -> PerQuery:
    """The largest weight of each query: 1/n_k if it looks everywhere alike.

    Args:
        weights: (..., n_q, n_k).

    Returns:
        One weight a query, (..., n_q).

    >>> peaks(torch.tensor([[0.2, 0.7, 0.1], [0.25, 0.25, 0.5]]))
    tensor([0.7000, 0.5000])
    """
    # Without a key there is none to weigh anything.
    return weights.amax(dim=-1) if weights.shape[-1] else row_sums(weights)


@checked
def entropy(weights: Weights, *, base: float | int = math.e) -> PerQuery:
    """How widely each query looks: −Σ w log w over its keys.

    It is 0 for a query that looks at one key, and log n for one that looks
    at n keys alike. A weight of 0 adds 0, the limit of w log w; so does a
    query that may see no key. Neither passes anything back.

    Args:
        weights: (..., n_q, n_k).
        base: of the logarithm: e counts in nats, 2 in bits.

    Returns:
        One entropy a query, (..., n_q).

    Raises:
        ValueError: if the base is not larger than 1, or a weight is
            negative.

    Reference: Shannon (1948), section 6.

    >>> entropy(torch.tensor([[0.5, 0.5, 0.0], [0.0, 1.0, 0.0]]), base=2)
    tensor([1., 0.])
    """
    if not 1 < base < math.inf:
        raise ValueError(
            "the base of a logarithm must be a finite number larger than 1, "
            f"but base={base}"
        )
    check_not_negative(weights)
    # At 0 its slope is infinite, and times that of softmax, 0, NaN.
    some = weights.masked_fill(weights == 0, 1.0)
    return torch.special.entr(some).sum(dim=-1) / math.log(base)


def check_not_negative(weights: Tensor) -> None:
    """Raise if a weight is negative, where that can be seen.

    One that is so by rounding alone would have an entropy of −∞, too.
    """
    if not are_at_hand(weights):
        return
    if bool((weights < 0).any()):
        raise ValueError(
            "weights must not be negative, but the least of these is "
            f"{float(weights.min()):.4g}; scores become weights by softmax"
        )


def check_shares(weights: Tensor, mask: Tensor | None = None) -> None:
    """Raise unless each query's weights are shares of 1 at most, and none is
    of what a mask hides, where that can be seen.
    """
    check_not_negative(weights)
    if not (weights.numel() and are_at_hand(weights)):
        return
    weights = weights.detach()
    if (most := float(weights.sum(dim=-1).amax())) > 1 + ROUNDED:
        raise ValueError(
            "weights must add up to 1 at most for each query, but the most "
            f"that these do is {most:.4g}; scores become weights by softmax"
        )
    if mask is None or not are_at_hand(mask):
        return
    if (most := float(weights.masked_fill(mask, 0.0).amax())) > ROUNDED:
        raise ValueError(
            "weights must be 0 where the mask hides a key, but there the "
            f"largest is {most:.4g}; the mask must be that of the weights"
        )


@checked
def spread(weights: Weights, mask: Tensor | None = None) -> PerQuery:
    """The entropy as a share of the largest possible one: between 0 and 1.

    Entropies of queries that see different numbers of keys, as under a causal
    mask, cannot be compared; their shares of log n_visible can.

    Args:
        weights: (..., n_q, n_k).
        mask: True where a query may attend; broadcasts to the weights. All
            keys when None.

    Returns:
        One share a query, (..., n_q): 1 where it looks at all visible keys
        alike. A query that sees one key or none has no choice, and gets 0.

    Raises:
        ValueError: if weights are negative, add up to more than 1, or are
            where the mask hides a key.

    >>> spread(torch.tensor([[1.0, 0.0], [0.5, 0.5]]))
    tensor([0., 1.])
    """
    if mask is None:
        mask = torch.ones_like(weights, dtype=torch.bool)
    check_tables(mask, None)
    check_broadcasts("mask", mask, tuple(weights.shape))
    check_places(weights=weights, mask=mask)
    check_shares(weights, mask)
    visible = mask.expand(weights.shape).sum(dim=-1)
    # Counted in whole numbers, as float16 counts to 65,504; their logarithm
    # would be of the default type, which is not that of the weights.
    [wide] = widen(weights)
    # Of one key it is 0, by which even what is filled in after would be NaN on
    # the way back.
    share = entropy(wide) / visible.clamp(min=2).to(wide.dtype).log()
    # Rounding may leave more than all of it, by a number that has no slope.
    share = share - (share - 1).detach().clamp(min=0)
    return share.masked_fill(visible < 2, 0.0).to(weights.dtype)


@checked
def not_finite(tensors: Mapping[str, Tensor]) -> dict[str, dict[str, int]]:
    """Which tensors hold NaN or infinity, and how many of each.

    Args:
        tensors: by name, in the order in which they were computed, such as
            ``attention_steps(q, k, v)._asdict()`` or a model's parameters.

    Returns:
        For each tensor that is not finite, in the same order, its counts of
        ``nan``, ``inf`` and ``-inf``. The first is where the trouble began.

    Raises:
        TypeError: if one of them is no tensor.
        ValueError: if one of them is sparse, complex, quantised or on meta.

    >>> x = torch.tensor([1.0, 0.0])
    >>> not_finite({"x": x, "log": x.log()})
    {'log': {'nan': 0, 'inf': 0, '-inf': 1}}
    """
    counts = {name: counted(name, x) for name, x in tensors.items()}
    return {name: of for name, of in counts.items() if any(of.values())}


def counted(name: str, x: Tensor) -> dict[str, int]:
    """How many of a tensor's numbers are NaN, and how many infinite."""
    check_tensor(f"tensors[{name!r}]", x)
    if x.is_complex() or x.is_quantized or not are_at_hand(x):
        raise ValueError(
            f"tensors must be of real numbers that are at hand, but {name!r} "
            f"is {shown(x)} on {x.device}"
        )
    if x.is_floating_point() and x.itemsize < 2:
        x = x.float()  # of one byte, PyTorch does not tell
    return {
        "nan": int(x.isnan().sum()),
        "inf": int(x.isposinf().sum()),
        "-inf": int(x.isneginf().sum()),
    }


@checked
def weight_on(
    weights: Float[Tensor, "batch h n_q n_k"],
    queries: Int[Tensor, " m"],
    keys: Int[Tensor, "batch m"],
) -> Float[Tensor, " h"]:
    """The mean weight that each head puts on one key of each query.

    With the token before as the key it is a head's *previous-token score*;
    with what came after the present token the last time, its *induction
    score*.

    Args:
        weights: (batch, n_heads, n_q, n_k).
        queries: positions that ask.
        keys: for each text, the position that each of them should look at.

    Returns:
        One mean a head, between 0 and 1.

    Raises:
        ValueError: if there is no query, or a position lies outside; if
            weights are negative, or add up to more than 1.

    >>> weights = torch.tensor([[[[1.0, 0.0], [0.7, 0.3]]]])
    >>> weight_on(weights, torch.tensor([1]), torch.tensor([[0]]))
    tensor([0.7000])
    """
    for name, at, n in (
        ("queries", queries, weights.shape[-2]),
        ("keys", keys, weights.shape[-1]),
    ):
        outside = are_at_hand(at) and ((at < 0) | (at >= n)).any()
        if at.numel() == 0 or outside:
            told = at.tolist() if are_at_hand(at) else shown(at)
            raise ValueError(
                f"{name} must be positions from 0 to {n - 1}, at least one, "
                f"but they are {told}"
            )
    check_shares(weights)
    asking = weights[:, :, queries.long()]  # of uint8, PyTorch makes a mask
    at = keys.long()[:, None, :, None].expand(-1, weights.shape[1], -1, 1)
    return asking.gather(-1, at).mean(dim=(0, 2, 3))


@checked
def fewest_keys(
    weights: Float[Tensor, " n_k"], values: Float[Tensor, "n_k d_v"]
) -> Float[Tensor, " n_k"]:
    """Other weights with the same output, on at most d_v + 1 keys.

    As long as more keys have weight than an average in d_v dimensions can
    tell apart, some of it can be moved without moving the average. It is
    taken from the key with the largest weight, as far as that goes, until a
    key has none left; and so on.

    Args:
        weights: of one query; not negative.
        values: one a key.

    Returns:
        Weights with the same sum and the same output.

    Raises:
        ValueError: if a weight is negative, or anything is not finite, such
            as the sum of all weights.

    Reference: Carathéodory (1911).

    >>> values = torch.tensor([[0.0], [1.0], [2.0]])
    >>> other = fewest_keys(torch.tensor([0.25, 0.5, 0.25]), values)
    >>> other, other @ values
    (tensor([0.5000, 0.0000, 0.5000]), tensor([1.]))
    """
    check_averaged(weights, values)
    # What must stay: the output and the sum. In float64, as it is repeated.
    stays = torch.cat([values, values.new_ones(len(values), 1)], -1).double()
    w = weights.double().clone()
    while (w > 0).sum() > stays.shape[1]:
        keys = (w > 0).nonzero().flatten()
        fixed = row_space(stays[keys].mT)
        top = w[keys].argmax()
        step = freely(fixed, top)
        if step.norm() < 1e-9:  # it cannot move: another does
            step = freely(fixed, fixed.square().sum(dim=0).argmin())
        if step[top] > 0:  # the largest loses, as long as it can
            step = -step
        falls = step < 0
        far = w[keys][falls] / -step[falls]
        w[keys] += step * far.min()
        w[keys[falls][far.argmin()]] = 0.0
    return w.clamp(min=0).to(weights)


def check_averaged(weights: Tensor, values: Tensor) -> None:
    """Raise unless these are numbers of which an average can be made."""
    for name, x in (("weights", weights), ("values", values)):
        if not are_at_hand(x):
            raise ValueError(
                f"{name} must be numbers, which are moved one by one, but on "
                f"meta and within torch.func there are none: {shown(x)}"
            )
    total = weights.double().sum()
    if not (total.isfinite() and (weights >= 0).all()):
        raise ValueError(
            "weights must be finite and not negative, and so must their sum, "
            f"but they are {weights.tolist()}"
        )
    if not values.isfinite().all():
        raise ValueError("values must be finite, but some are not")


def freely(fixed: Tensor, key: Tensor) -> Tensor:
    """How weights move that keep all products with some rows, if one key's
    is to move most: its unit vector, less what lies along the rows.

    >>> freely(torch.tensor([[0.6, 0.8]]), torch.tensor(0))
    tensor([ 0.6400, -0.4800])
    """
    step = -(fixed.mT @ fixed[:, key])
    step[key] += 1.0
    return step


def row_space(matrix: Tensor) -> Tensor:
    """Orthonormal rows that span those of a matrix, (rank, n)."""
    # Each row is told from zero by its own size, however large another is.
    largest = matrix.abs().amax(dim=1, keepdim=True)
    matrix = matrix / largest.where(largest > 0, 1.0)
    # Not its null space, n × n: it would be made anew for each of n keys.
    _, sizes, rows = torch.linalg.svd(matrix, full_matrices=False)
    return rows[sizes > 1e-12 * sizes.max()]
