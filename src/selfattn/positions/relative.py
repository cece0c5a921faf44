"""Positions in the scores: what a distance adds to them."""

import math

import torch
from jaxtyping import Float, Int, Integer
from torch import Tensor, nn

from selfattn.checks import check_flag, check_shapes
from selfattn.dot_product import (
    Bias,
    Keys,
    Mask,
    Output,
    Queries,
    Table,
    Values,
    masked_softmax,
    widen,
    with_bias,
    with_causal,
)
from selfattn.entering import check_at_layer, check_enters, check_width
from selfattn.hidden import average, felt_alone, match, products
from selfattn.masks import indices
from selfattn.mismatches import check_filled
from selfattn.positions.absolute import waves
from selfattn.signatures import Count, Positive, checked


@checked
def alibi_bias(
    n_heads: int,
    n_q: Count,
    n_k: Count,
    *,
    device: torch.device | str | None = None,
) -> Float[Tensor, "n_heads n_q n_k"]:
    """ALiBi: each head subtracts its slope times the distance.

    Args:
        n_heads: number of heads; their slopes are `alibi_slopes`.
        n_q: number of queries.
        n_k: number of keys; the last query sits on the last key.
        device: where to make the bias.

    Returns:
        A bias in float32, (n_heads, n_q, n_k): zero on a query's own
        position, negative elsewhere. The paper is causal; for keys after the
        query this is its symmetric form.

    Reference: Press et al. (2022), section 3.

    >>> alibi_bias(2, 1, 3)
    tensor([[[-0.1250, -0.0625,  0.0000]],
    <BLANKLINE>
            [[-0.0078, -0.0039,  0.0000]]])
    """
    i, j = indices(n_q, n_k, device=device)
    slope = alibi_slopes(n_heads, device=i.device)
    return slope[:, None, None] * -(i - j).abs()


@checked
def alibi_slopes(
    n_heads: int, *, device: torch.device | str | None = None
) -> Float[Tensor, " n_heads"]:
    """The slopes of ALiBi's heads: 2^(-8/n), 2^(-16/n), … for n heads.

    That is for a power of two. Otherwise the authors take the slopes for the
    power below, and the rest from every second slope of the power above.

    Raises:
        ValueError: if there is no head, or if there are more than 2¹⁶: the
            slopes are made one by one.

    >>> alibi_slopes(3)
    tensor([0.0625, 0.0039, 0.2500])
    """
    if not 1 <= n_heads <= 2**16:
        few = "a head" if n_heads < 1 else "at most 65,536 heads"
        raise ValueError(f"there must be {few}, but n_heads={n_heads}")
    below = 2 ** (n_heads.bit_length() - 1)
    power = [2.0 ** (-8 * i / below) for i in range(1, below + 1)]
    between = [2.0 ** (-4 * i / below) for i in range(1, 2 * below + 1, 2)]
    slopes = power + between[: n_heads - below]
    return torch.tensor(slopes, dtype=torch.float32, device=device)


@checked
def t5_bucket(
    distance: Integer[Tensor, "*shape"],
    *,
    causal: bool = False,
    n_buckets: int = 32,
    max_distance: Positive = 128,
) -> Int[Tensor, "*shape"]:
    """T5's bucket for a distance: exact when near, logarithmic when far.

    Args:
        distance: key position minus query position.
        causal: keys after the query share bucket 0 (as in T5's decoder);
            otherwise they have the upper half of the buckets.
        n_buckets: number of buckets, both directions together; even unless
            causal.
        max_distance: from here on, everything is in the last bucket.

    Returns:
        Numbers from 0 to n_buckets - 1, in the shape of ``distance``.

    Raises:
        ValueError: if two directions do not share the buckets evenly, one is
            left without one exact and one logarithmic bucket, or the far ones
            would begin past the maximum.

    Reference: Raffel et al. (2020), section 2.1.

    >>> distance = torch.tensor([0, -1, -7, -8, -20, -500, 1, 500])
    >>> t5_bucket(distance).tolist()
    [0, 1, 7, 8, 10, 15, 17, 31]
    """
    near = check_buckets(n_buckets, causal, max_distance)
    one_way = n_buckets if causal else n_buckets // 2
    # In int8, -128 has no opposite; nor has the lowest number of int64.
    distance = distance.long().clamp(min=-(2**63 - 1))
    later = torch.zeros_like(distance)
    if causal:
        away = (-distance).clamp(min=0)
    else:
        later = (distance > 0) * one_way
        away = distance.abs()
    # float32, whatever type is the default: half would take the next bucket.
    times = away.clamp(min=1).float() / near
    step = times.log() / math.log(max_distance / near)
    far = near + (step * (one_way - near)).to(distance.dtype)
    return later + torch.where(away < near, away, far.clamp(max=one_way - 1))


def check_buckets(n_buckets: int, causal: bool, max_distance: int) -> int:
    """How many distances have a bucket of their own.

    Raises:
        ValueError: unless two directions can share the buckets evenly, and
            there are near ones, and far ones behind them; or if there are
            more than float32 can count.
    """
    if (n_buckets % 2 and not causal) or n_buckets > 2**24:
        raise ValueError(
            "n_buckets must be even unless causal, half for each direction, "
            f"and at most 2**24, but n_buckets={n_buckets}"
        )
    near = n_buckets // (2 if causal else 4)
    if near < 1 or max_distance <= near:
        raise ValueError(
            "half of a direction's buckets must hold one distance each, and "
            f"those must end before max_distance, but n_buckets={n_buckets}, "
            f"causal={causal} and max_distance={max_distance}"
        )
    return near


class T5Bias(nn.Module):
    """T5's relative positions: one number to learn per head and bucket.

    T5 does not scale its scores: use it with ``attention(…, scale=1.0)``.

    Args:
        n_heads: number of heads.
        causal: whether it is for a decoder, where no key lies ahead.
        n_buckets: number of buckets; see `t5_bucket`.
        max_distance: from here on, all distances are alike.

    Reference: Raffel et al. (2020), section 2.1.

    >>> T5Bias(n_heads=2)(3, 5).shape
    torch.Size([2, 3, 5])
    """

    @checked
    def __init__(
        self,
        n_heads: Positive,
        *,
        causal: bool = False,
        n_buckets: Positive = 32,
        max_distance: Positive = 128,
    ):
        """Make the table, (n_buckets, n_heads)."""
        super().__init__()
        # Said here, and not when the bias is first asked for.
        check_buckets(n_buckets, causal, max_distance)
        self.causal, self.max_distance = causal, max_distance
        self.table = nn.Parameter(0.02 * torch.randn(n_buckets, n_heads))

    @checked
    def forward(
        self, n_q: Count, n_k: Count
    ) -> Float[Tensor, "n_heads {n_q} {n_k}"]:
        """The bias to add to the scores, (n_heads, n_q, n_k)."""
        i, j = indices(n_q, n_k, device=self.table.device)
        bucket = t5_bucket(
            j - i,
            causal=self.causal,
            n_buckets=self.table.shape[0],
            max_distance=self.max_distance,
        )
        # Many pairs share a bucket, and its gradient is the sum of theirs.
        [table] = widen(self.table)
        return table[bucket].movedim(-1, 0).to(self.table.dtype)


class ShawAttention(nn.Module):
    """Attention in which keys and values say how far away they are.

    To the key and to the value at distance j - i, clipped to
    ±max_distance, a learned vector is added before the query sees them:
    score = q·(k + a_{j-i}) / √d, output = Σ weight (v + b_{j-i}).

    Args:
        d: features of queries and keys.
        d_v: features of values; d when None.
        max_distance: beyond it, all distances are alike.

    Reference: Shaw et al. (2018), equations 3 and 4.
    """

    @checked
    def __init__(
        self,
        d: Positive,
        d_v: Positive | None = None,
        *,
        max_distance: Positive,
    ):
        """Make one vector per distance from -max_distance to max_distance."""
        super().__init__()
        d_v = d if d_v is None else d_v
        n_distances = 2 * max_distance + 1
        self.max_distance = max_distance
        self.for_keys = nn.Parameter(0.02 * torch.randn(n_distances, d))
        self.for_values = nn.Parameter(0.02 * torch.randn(n_distances, d_v))

    @checked
    def weights(
        self,
        q: Queries,
        k: Keys,
        *,
        mask: Mask = None,
        bias: Bias = None,
        causal: bool = False,
    ) -> Table:
        """The attention weights, (..., n_q, n_k)."""
        check_shapes(q, k, k, mask, bias)
        check_flag("causal", causal)
        check_enters("q", q, self.for_keys)
        q, k, bias, for_keys = widen(q, k, bias, self.for_keys)
        # q·a for every distance first, (..., n_q, n_distances), then pick:
        # no tensor (n_q, n_k, d) need exist.
        by_distance = match(q, for_keys)
        distance = self.distances(q, k).expand(*by_distance.shape[:-1], -1)
        scores = match(q, k) + by_distance.gather(-1, distance)
        scaled = scores / math.sqrt(q.shape[-1])
        biased = with_bias(scaled, bias)
        return masked_softmax(biased, with_causal(mask, causal, q, k))

    @checked
    def forward(
        self,
        q: Queries,
        k: Keys,
        v: Values,
        *,
        mask: Mask = None,
        bias: Bias = None,
        causal: bool = False,
    ) -> Output:
        """Attend, (..., n_q, d_v); arguments as for `attention`."""
        check_shapes(q, k, v, mask, bias)
        check_enters("v", v, self.for_values)
        weights = self.weights(q, k, mask=mask, bias=bias, causal=causal)
        # The weight that each distance gets in all, (..., n_q, n_distances).
        shape = *weights.shape[:-1], self.for_values.shape[0]
        total = weights.new_zeros(shape)
        distance = self.distances(q, k).expand_as(weights)
        total = total.scatter_add(-1, distance, weights)
        wide, for_values = widen(v, self.for_values)
        output = average(weights, wide) + average(total, for_values)
        return felt_alone(output).to(v.dtype)

    @checked
    def distances(self, q: Queries, k: Keys) -> Int[Tensor, "n_q n_k"]:
        """Rows of the two tables for each query and key, (n_q, n_k)."""
        check_width("q", q, self.for_keys.shape[-1])
        check_at_layer("q", q, self.for_keys)
        i, j = indices(q.shape[-2], k.shape[-2], device=q.device)
        limit = self.max_distance
        return (j - i).clamp(-limit, limit) + limit


class TransformerXLAttention(nn.Module):
    """Relative positions that are computed, not learned, one vector each.

    score = ((q + u)·k + (q + w)·W_r r_{i-j}) / √d: how well the contents
    match, and how well the distance suits; u and w say what every query of
    the head likes, whatever it asks. r is a row of `sinusoidal`.

    Args:
        n_heads: number of heads; q must be (..., n_heads, n_q, d).
        d: features of queries and keys of one head.

    Reference: Dai et al. (2019), section 3.3.
    """

    @checked
    def __init__(self, n_heads: Positive, d: Positive):
        """Make u, w and the projection of the distances for each head."""
        super().__init__()
        self.u = nn.Parameter(torch.zeros(n_heads, 1, d))
        self.w = nn.Parameter(torch.zeros(n_heads, 1, d))
        self.W_r = nn.Parameter(torch.randn(n_heads, d, d) / math.sqrt(d))

    @checked
    def weights(
        self,
        q: Queries,
        k: Keys,
        *,
        mask: Mask = None,
        bias: Bias = None,
        causal: bool = False,
    ) -> Table:
        """The attention weights, (..., n_heads, n_q, n_k)."""
        check_shapes(q, k, k, mask, bias)
        n_heads, _, d = self.u.shape
        if q.ndim < 3 or q.shape[-3] != n_heads or q.shape[-1] != d:
            raise ValueError(
                f"queries must be (..., n_heads, n_q, d) = (..., {n_heads}, "
                f"n_q, {d}), but q is {tuple(q.shape)}"
            )
        check_flag("causal", causal)
        check_at_layer("q", q, self.u)
        check_filled(self, q)
        n_q, n_k = q.shape[-2], k.shape[-2]
        i, j = indices(n_q, n_k, device=q.device)
        q, k, bias, u, w, W_r = widen(q, k, bias, self.u, self.w, self.W_r)
        # Distances i - j run from -(n_q - 1) to n_k - 1; one row for each.
        table = waves(max(0, n_q + n_k - 1), d, 1 - n_q, q.device).to(q)
        by_distance = match(q + w, products(table, W_r))
        row = (i - j + n_q - 1).expand(*by_distance.shape[:-1], n_k)
        scores = match(q + u, k) + by_distance.gather(-1, row)
        scaled = scores / math.sqrt(d)
        biased = with_bias(scaled, bias)
        return masked_softmax(biased, with_causal(mask, causal, q, k))

    @checked
    def forward(
        self,
        q: Queries,
        k: Keys,
        v: Values,
        *,
        mask: Mask = None,
        bias: Bias = None,
        causal: bool = False,
    ) -> Output:
        """Attend, (..., n_heads, n_q, d_v); arguments as for `attention`."""
        check_shapes(q, k, v, mask, bias)
        weights = self.weights(q, k, mask=mask, bias=bias, causal=causal)
        return average(weights, widen(v)[0]).to(v.dtype)
