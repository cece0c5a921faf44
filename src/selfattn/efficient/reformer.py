"""Reformer: sort tokens into buckets by direction, and attend within them.

Computes:  exactly `attention` with `lsh_mask`; with one bucket, `attention`
Time:      O(r n b d), r rounds, b keys in a bucket; hashing O(r n² d / 32)
Memory:    O(n d), and the scores of some buckets
Supports:  causal
Reference: Kitaev et al. (2020), section 2
"""

import math
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Int
from torch import Tensor

from selfattn.buckets import groups, unless_alone
from selfattn.checks import (
    are_at_hand,
    check_call,
    check_flag,
    check_once,
    check_shapes,
)
from selfattn.dot_product import (
    Bias,
    Keys,
    Mask,
    Output,
    Queries,
    Values,
    refuse,
    widen,
)
from selfattn.hidden import unfelt
from selfattn.masks import indices
from selfattn.pieces import (
    LOG2_E,
    next_weights,
    on_any_axes,
    one_batch_axis,
    without_autocast,
)
from selfattn.random_features import normal
from selfattn.signatures import Seed, checked
from selfattn.spoilt import LARGE, can_look
from selfattn.transforms import is_of_own_ways, is_traced

BUCKET = 32  # keys for each bucket there is, if the caller does not say
MOST = 1 << 24  # buckets, which float32 can count one by one


@checked
@without_autocast
def lsh_buckets(
    x: Queries, *, n_buckets: int, n_rounds: int = 4, seed: Seed = 0
) -> Int[Tensor, "n_rounds ... n_q"]:
    """In each round, the nearest of some random directions: the bucket.

    Args:
        x: queries or keys, (..., n, d); how long they are does not matter.
        n_buckets: how many buckets: directions come in opposite pairs, so an
            even number up to 2²⁴, or 1.
        n_rounds: how often to draw directions.
        seed: of the directions. The global generator is not touched.

    Returns:
        The bucket of each in each round, (n_rounds, ..., n), from 0 to
        n_buckets - 1. With two buckets, two vectors at an angle θ share one
        with probability 1 - θ/π; with more, less probably.

    Raises:
        ValueError: if there is no round, or no such number of buckets.

    Reference: Kitaev et al. (2020), section 2; Andoni et al. (2015).

    >>> x = torch.tensor([[3.0, 1.0], [6.0, 2.0], [-3.0, -1.0]])
    >>> a, same, opposite = lsh_buckets(x, n_buckets=8, n_rounds=1)[0]
    >>> bool(a == same), int(opposite - a) % 8
    (True, 4)
    """
    check_shapes(x, x, x)
    paired = n_buckets == 1 or n_buckets % 2 == 0
    if n_rounds < 1 or not (paired and 1 <= n_buckets <= MOST):
        raise ValueError(
            "there must be at least 1 round, and 1 bucket or an even number "
            f"up to {MOST}, but n_rounds={n_rounds} and n_buckets={n_buckets}"
        )
    half, d = n_buckets // 2, x.shape[-1]
    generator = torch.Generator().manual_seed(seed)
    directions = normal(n_rounds, d, max(1, half), generator=generator)
    x, directions = widen(x.detach(), directions.to(x.device))
    numbers = torch.arange(directions.shape[-1], device=x.device).to(x.dtype)
    buckets = []
    # Some tokens at a time: products with all directions are many.
    for part in x.reshape(-1, d).split(1024):
        products = of_moderate_length(part) @ directions
        size = products.abs()
        nearest = size == size.amax(dim=-1, keepdim=True)
        # `argmax` would take several times as long.
        buckets.append((nearest * (numbers + half * (products < 0))).amax(-1))
    return torch.cat(buckets, dim=1).int().view(n_rounds, *x.shape[:-1])


def of_moderate_length(x: Tensor) -> Tensor:
    """The vectors, those too long or too short to be multiplied divided by
    their largest number: that turns none.

    >>> of_moderate_length(torch.tensor([[3.0, 1.0], [3e38, 0.0], [0, 1e-44]]))
    tensor([[3., 1.],
            [1., 0.],
            [0., 1.]])
    """
    most = x.abs().amax(dim=-1, keepdim=True)
    is_long, is_short = (most > LARGE) & (most < math.inf), most < 1 / LARGE
    odd = is_long | (is_short & (most > 0))
    if can_look(x) and not odd.any():
        return x
    return torch.where(odd, x / most, x)


@checked
def lsh_mask(
    q: Queries,
    k: Keys,
    *,
    n_buckets: int | None = None,
    n_rounds: int = 4,
    seed: Seed = 0,
    see_itself: bool = True,
    causal: bool = False,
) -> Bool[Tensor, "... n_q n_k"]:
    """The keys that share a bucket with the query in any round.

    Args:
        q: queries, (..., n_q, d).
        k: keys, (..., n_k, d).
        n_buckets: how many buckets; about one for each 32 keys, if None.
        n_rounds: how many rounds.
        seed: of the random directions.
        see_itself: False lets a token see itself only if it sees no other.
        causal: hide from each query the keys after it.

    Returns:
        A mask, (..., n_q, n_k).

    Raises:
        ValueError: as `lsh_buckets`.

    Reference: Kitaev et al. (2020), section 2, equation 5.

    >>> from selfattn.masks import draw
    >>> x = torch.tensor([[1.0, 0.0], [2.0, 0.1], [-1.0, 0.0], [-2.0, 0.1]])
    >>> print(draw(lsh_mask(x, x, n_buckets=2, n_rounds=1)))
    ■ ■ · ·
    ■ ■ · ·
    · · ■ ■
    · · ■ ■
    """
    of_q, of_k, _ = both_buckets(q, k, n_buckets, n_rounds, seed)
    of_q, of_k = of_q.movedim(0, -1), of_k.movedim(0, -1)
    seen = (of_q[..., :, None, :] == of_k[..., None, :, :]).any(dim=-1)
    i, j = indices(*seen.shape[-2:], device=q.device)
    if causal:
        seen &= j <= i
    if not see_itself:
        others = seen & (i != j)
        seen = others | (seen & ~others.any(dim=-1, keepdim=True))
    return seen


TRACED = (
    "has none that last while a model is traced, exported or compiled; what "
    "is compiled can call torch.compiler.disable(lsh_attention)"
)


def lsh_attention(
    q: Queries,
    k: Keys,
    v: Values,
    *,
    mask: Mask = None,
    bias: Bias = None,
    causal: bool = False,
    n_buckets: int | None = None,
    n_rounds: int = 4,
    seed: Seed = 0,
    see_itself: bool = True,
) -> Output:
    """Attend to the keys that point where the query points, more or less.

    Reformer shares queries and keys, so that a token is in one bucket as
    both, and sees itself last: ``lsh_attention(q, F.normalize(q, dim=-1), v,
    see_itself=False)``. Else a query may find no key in its bucket.

    Args:
        q: queries, (..., n_q, d).
        k: keys, (..., n_k, d).
        v: values, (..., n_k, d_v).
        mask: refused: use `flash_attention` with ``lsh_mask(...) & mask``.
        bias: refused, likewise.
        causal: hide from each query the keys after it; the last query sits
            on the last key. Nor do they change which others it sees.
        n_buckets: how many buckets, 1 or an even number; about one for each 32
            keys, if None. Then they are others as a text grows: bind a number
            to write with a cache, which asks for it. With 1, this is exactly
            `attention`.
        n_rounds: how many rounds. A key found in several counts once.
        seed: of the random directions.
        see_itself: False lets a token see itself only if it sees no other.

    Returns:
        The output, (..., n_q, d_v). A query that may see no key gets zeros.
        It can be differentiated once, not twice.

    Raises:
        ValueError: if shapes do not fit together, there is no round or no
            such number of buckets, or a mask or bias is given; or where no
            numbers are at hand, as on meta and in a trace.

    Reference: Kitaev et al. (2020), section 2. There, sorted tokens are cut
    into pieces of equal length, which makes all of them alike and loses some
    keys; here a bucket is as large as it comes.

    >>> from selfattn.dot_product import attention
    >>> q, k, v = torch.randn(3, 100, 8)
    >>> found = lsh_attention(q, k, v, n_buckets=4)
    >>> same = attention(q, k, v, mask=lsh_mask(q, k, n_buckets=4))
    >>> torch.allclose(found, same, atol=1e-6)
    True
    """
    check_call("lsh_attention", q, k, v, causal)
    check_flag("see_itself", see_itself)
    why = "it makes no table of scores to put it on"
    refuse("lsh_attention", why, mask, bias)
    check_hashable(q, k, v)
    q_flat, k_flat, _ = one_batch_axis(q, k, v)
    buckets = both_buckets(q_flat, k_flat, n_buckets, n_rounds, seed)
    own = None if see_itself else unless_alone(*buckets, causal)
    pairs = partial(groups, *buckets, causal, own)

    attend = on_any_axes(lambda *qkv: Lsh.apply(*qkv, pairs, False))
    exactly = on_any_axes(lambda *qkv: Lsh.apply(*qkv, pairs, True))
    return unfelt(attend, q, k, v, exactly=exactly)


# What is left to the length of the call: a layer that keeps keys asks for it.
vars(lsh_attention)["by_length"] = "n_buckets"


def check_hashable(q: Tensor, k: Tensor, v: Tensor) -> None:
    """Raise unless there are numbers at hand, of which buckets are made."""
    if not are_at_hand(q) or is_traced():
        none = "is on meta" if q.is_meta else TRACED
        raise ValueError(f"buckets are of numbers, but q {none}")
    for name, x in (("q", q), ("k", k), ("v", v)):
        if is_of_own_ways(x):
            raise ValueError(
                "buckets are of numbers that are at hand, which those of a "
                "class with a way of its own to compute are not, but "
                f"{name} is a {type(x).__name__}"
            )


@checked
def both_buckets(
    q: Tensor, k: Tensor, n_buckets: int | None, n_rounds: int, seed: Seed
) -> tuple[Tensor, Tensor, int]:
    """Those of the queries, those of the keys, and how many there are."""
    check_shapes(q, k, k)
    if n_buckets is None:
        n_buckets = max(1, k.shape[-2] // (2 * BUCKET) * 2)
    # In one bucket, every round would find the same.
    n_rounds = n_rounds if n_buckets > 1 else min(n_rounds, 1)
    options = {"n_buckets": n_buckets, "n_rounds": n_rounds, "seed": seed}
    return lsh_buckets(q, **options), lsh_buckets(k, **options), n_buckets


class Lsh(torch.autograd.Function):
    """Both passes by hand, on (batch, n, d): one softmax over all rounds.

    A new round rescales what the earlier ones left, as FlashAttention does.
    On the way back each group makes its weights anew. Exponentials are
    powers of two: on a CPU, ``exp`` is slow where it rounds to zero.
    Autocast is off in both: it would round what many groups add up to.
    """

    @staticmethod
    @without_autocast
    def forward(ctx: Any, q, k, v, cut, hiding):
        """Add each group to the output of its queries."""
        shapes = [x.shape for x in (q, k, v)]
        q, k, v = map(with_padding, (q, k, v))
        # The output is kept in float32 at least: what two terms of the way
        # back leave of each other may be less than half precision rounds.
        output, total = zeros_like(q, v.shape[-1]), zeros_like(q, 1)
        # The lowest finite number and not -inf, because -inf - -inf is NaN.
        top = zeros_like(q, 1)
        top.fill_(torch.finfo(top.dtype).min)
        for rows, keys, added in cut():
            scores, _, _, values = scored(q, k, v, rows, keys, added, hiding)
            weights, shrink, top[rows], total[rows] = next_weights(
                scores, take(top, rows), take(total, rows)
            )
            summed = take(output, rows).mul_(shrink)
            output[rows] = torch.baddbmm(summed, weights, values, out=summed)
        total.masked_fill_(total == 0, 1.0)
        output.div_(total)
        ctx.save_for_backward(q, k, v, output, top, total)
        ctx.cut, ctx.shapes = cut, shapes
        # A copy: of a view made here, PyTorch has nothing changed in place.
        given = output[:-1].view(*shapes[0][:-1], v.shape[-1])
        return given.to(q.dtype, copy=True)

    @staticmethod
    @without_autocast
    def backward(ctx: Any, grad_output):
        """Visit the same groups, and add up what they pass back."""
        check_once("lsh_attention", grad_output)
        q, k, v, output, top, total = ctx.saved_tensors
        # Weights are powers of two over the total, which is put on what they
        # are multiplied with.
        grad_output = with_padding(grad_output) / total
        dots = (grad_output * output).sum(dim=-1, keepdim=True)
        grads = [zeros_like(x, x.shape[-1]) for x in (q, k, v)]
        for rows, keys, added in ctx.cut():
            scores, queries, near, values = scored(q, k, v, rows, keys, added)
            weights = scores.sub_(take(top, rows)).exp2_()
            grad = take(grad_output, rows)
            add(grads[2], keys, weights.mT @ grad)
            back = (grad @ values.mT).sub_(take(dots, rows)).mul_(weights)
            add(grads[0], rows, back @ near)
            add(grads[1], keys, back.mT @ queries)
        for grad in grads[:2]:
            grad /= math.sqrt(q.shape[-1])
        both = zip(grads, ctx.shapes, strict=True)
        given = (g[:-1].view(shape).to(q.dtype) for g, shape in both)
        return *given, None, None


def scored(q, k, v, rows, keys, added, hiding: bool = False) -> Any:
    """A group's scores, in powers of two, and what they were made of.

    Hiding, minus infinity takes the place of scores; else it is added, which
    is faster, and makes NaN of those that are infinite.
    """
    queries, near, values = widen(take(q, rows), take(k, keys), take(v, keys))
    scale = LOG2_E / math.sqrt(q.shape[-1])
    scores = torch.baddbmm(added.to(queries), queries, near.mT, alpha=scale)
    if hiding:
        scores.masked_fill_(added == -math.inf, -math.inf)
    return scores, queries, near, values


def with_padding(x: Tensor) -> Tensor:
    """The tokens of the batch in one line, and behind them the one that only
    pads: zeros, and not another sequence's token, which might hold NaN.
    """
    return F.pad(x.flatten(0, 1), (0, 0, 0, 1))


def zeros_like(x: Tensor, width: int) -> Tensor:
    """Zeros for each token in line, in float32 at least."""
    return widen(x.new_zeros(len(x), width))[0]


def take(x: Tensor, at: Tensor) -> Tensor:
    """The rows of these tokens."""
    return x.index_select(0, at.flatten()).view(*at.shape, x.shape[-1])


def add(x: Tensor, at: Tensor, rows: Tensor) -> None:
    """Add to the rows of these tokens."""
    x.index_add_(0, at.flatten(), rows.flatten(0, 1))
