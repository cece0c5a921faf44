"""Masks: who may look at whom.

A mask is a boolean tensor. ``True`` means "this query may attend to this
key". Masks broadcast against the scores, (..., n_q, n_k), and combine like
sentences: ``a & b`` allows what both allow, ``a | b`` what either allows.
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from selfattn.checks import are_at_hand, check_window
from selfattn.signatures import Count, checked, shown
from selfattn.transforms import is_of_own_ways

Mask = Bool[Tensor, "n_q n_k"]


@checked
def indices(
    n_q: Count, n_k: Count, *, device: torch.device | str | None = None
) -> tuple[Int[Tensor, "n_q 1"], Int[Tensor, "1 n_k"]]:
    """Positions i of the queries, as a column, and j of the keys, as a row.

    The last query sits on the last key, so ``n_q < n_k`` means that the
    queries are the newest tokens, as when a model generates with a cache.
    With ``n_q > n_k`` the first queries come before the first key.

    >>> i, j = indices(2, 5)
    >>> i.flatten().tolist(), j.flatten().tolist()
    ([3, 4], [0, 1, 2, 3, 4])
    >>> i, j = indices(5, 2)
    >>> i.flatten().tolist(), j.flatten().tolist()
    ([-3, -2, -1, 0, 1], [0, 1])
    """
    i = torch.arange(n_k - n_q, n_k, device=device)
    j = torch.arange(n_k, device=device)
    return i[:, None], j[None, :]


@checked
def causal_mask(
    n_q: Count, n_k: Count, *, device: torch.device | str | None = None
) -> Mask:
    """No query may see a key that comes after it.

    Args:
        n_q: number of queries.
        n_k: number of keys; the last query sits on the last key.
        device: where to make the mask.

    Returns:
        A mask, (n_q, n_k).

    Reference: Vaswani et al. (2017), section 3.2.3.

    Fewer queries than keys are the newest tokens, as with a cache. With
    more, the first sit before the first key, and see nothing.

    >>> print(draw(causal_mask(3, 5)))
    ■ ■ ■ · ·
    ■ ■ ■ ■ ·
    ■ ■ ■ ■ ■
    >>> print(draw(causal_mask(5, 3)))
    · · ·
    · · ·
    ■ · ·
    ■ ■ ·
    ■ ■ ■
    """
    i, j = indices(n_q, n_k, device=device)
    return j <= i


@checked
def window_mask(
    n_q: Count,
    n_k: Count,
    window: int,
    *,
    device: torch.device | str | None = None,
) -> Mask:
    """Each query sees the keys less than ``window`` away, itself among them.

    Args:
        n_q: number of queries.
        n_k: number of keys; the last query sits on the last key.
        window: how many keys to each side, the query's own counted; at
            least 1.
        device: where to make the mask.

    Returns:
        A mask, (n_q, n_k). Together with `causal_mask` it leaves each query
        its last ``window`` keys.

    Raises:
        ValueError: if the window is smaller than 1.

    Reference: Beltagy et al. (2020), section 3.1.

    >>> print(draw(window_mask(4, 4, window=2)))
    ■ ■ · ·
    ■ ■ ■ ·
    · ■ ■ ■
    · · ■ ■
    >>> print(draw(window_mask(4, 4, window=2) & causal_mask(4, 4)))
    ■ · · ·
    ■ ■ · ·
    · ■ ■ ·
    · · ■ ■
    """
    check_window(window)
    i, j = indices(n_q, n_k, device=device)
    return (i - j).abs() < window


@checked
def padding_mask(
    lengths: Int[Tensor, " batch"], n_k: Count
) -> Bool[Tensor, "batch 1 1 n_k"]:
    """Only the first ``lengths[b]`` keys of sequence b are real.

    Args:
        lengths: how many tokens of each sequence are real, (batch,).
        n_k: number of keys, padding included.

    Returns:
        A mask, (batch, 1, 1, n_k): it broadcasts over heads and queries, and
        lies on the device of ``lengths``.

    Raises:
        ValueError: if a length is negative or larger than ``n_k``.

    >>> mask = padding_mask(torch.tensor([3, 1]), n_k=4)
    >>> mask.shape
    torch.Size([2, 1, 1, 4])
    >>> print(draw(mask[0, 0] & causal_mask(4, 4)))
    ■ · · ·
    ■ ■ · ·
    ■ ■ ■ ·
    ■ ■ ■ ·
    """
    lengths = lengths.long()  # in int8, 300 keys are 44
    if are_at_hand(lengths) and ((lengths < 0) | (lengths > n_k)).any():
        raise ValueError(
            "each length must lie between 0 and the number of keys, but "
            f"lengths={lengths.tolist()} and n_k={n_k}"
        )
    real = torch.arange(n_k, device=lengths.device) < lengths[:, None]
    return real[:, None, None, :]


@checked
def prefix_mask(
    n_q: Count,
    n_k: Count,
    prefix: int,
    *,
    device: torch.device | str | None = None,
) -> Mask:
    """The first ``prefix`` keys are open to all; the others are causal.

    Args:
        n_q: number of queries.
        n_k: number of keys; the last query sits on the last key.
        prefix: how many keys at the start every query may see, later ones
            too.
        device: where to make the mask.

    Returns:
        A mask, (n_q, n_k): `causal_mask`, and the prefix besides.

    Raises:
        ValueError: if the prefix is negative or longer than the keys.

    Reference: Raffel et al. (2020), section 3.2.1, figure 3.

    >>> print(draw(prefix_mask(4, 4, prefix=2)))
    ■ ■ · ·
    ■ ■ · ·
    ■ ■ ■ ·
    ■ ■ ■ ■
    """
    if not 0 <= prefix <= n_k:
        raise ValueError(
            "a prefix must lie between 0 and the number of keys, but "
            f"prefix={prefix} and n_k={n_k}"
        )
    i, j = indices(n_q, n_k, device=device)
    return (j <= i) | (j < prefix)


@checked
def block_mask(
    n_q: Count,
    n_k: Count,
    size: int,
    *,
    device: torch.device | str | None = None,
) -> Mask:
    """Positions are cut into blocks; each query sees its own block.

    Args:
        n_q: number of queries.
        n_k: number of keys; the last query sits on the last key.
        size: how many positions a block has, counted from the first key.
        device: where to make the mask.

    Returns:
        A mask, (n_q, n_k).

    Raises:
        ValueError: if a block has no position.

    >>> print(draw(block_mask(5, 5, size=2)))
    ■ ■ · · ·
    ■ ■ · · ·
    · · ■ ■ ·
    · · ■ ■ ·
    · · · · ■
    """
    if size < 1:
        raise ValueError(
            f"a block must have at least 1 position, but size={size}"
        )
    i, j = indices(n_q, n_k, device=device)
    return i // size == j // size


@checked
def document_mask(
    documents: Int[Tensor, "batch n"],
) -> Bool[Tensor, "batch 1 n n"]:
    """Several texts share one row of a batch; each sees only itself.

    Args:
        documents: to which document each token belongs, (batch, n); the
            numbers only need to differ.

    Returns:
        A mask, (batch, 1, n, n): it broadcasts over heads, and lies on the
        device of ``documents``. Combine it with `causal_mask` as you like.

    Reference: Krell et al. (2021).

    >>> documents = torch.tensor([[0, 0, 0, 1, 1]])
    >>> print(draw(document_mask(documents)[0, 0] & causal_mask(5, 5)))
    ■ · · · ·
    ■ ■ · · ·
    ■ ■ ■ · ·
    · · · ■ ·
    · · · ■ ■
    """
    same = documents[:, :, None] == documents[:, None, :]
    return same[:, None]


@checked
def as_keep(
    mask: Bool[Tensor, "..."] | Float[Tensor, "..."],
) -> Bool[Tensor, "..."]:
    """Translate a mask of the other conventions into ours: True, may attend.

    Args:
        mask: of any shape. Boolean: True means "may *not* attend", as
            `torch.nn.MultiheadAttention` has it. Floating-point: added to the
            scores, 0 where a query may attend, and minus infinity or a large
            negative number (-1000 and below) where it may not.

    Returns:
        A new boolean mask of the same shape.

    Raises:
        ValueError: if numbers are neither: they are a bias, or a mask of 0
            and 1, whose meaning no one can tell from looking.

    >>> blocked = torch.tensor([[False, True], [False, False]])
    >>> print(draw(as_keep(blocked)))
    ■ ·
    ■ ■
    >>> added = torch.tensor([[0.0, -torch.inf], [0.0, 0.0]])
    >>> torch.equal(as_keep(added), as_keep(blocked))
    True
    """
    if mask.dtype == torch.bool:
        return ~mask
    if not mask.is_floating_point():
        raise ValueError(
            "a mask of whole numbers has no fixed meaning; write mask == 1 "
            f"or mask == 0 for what may attend, but its dtype is {mask.dtype}"
        )
    keep, block = mask == 0, mask <= -1000
    if are_at_hand(mask) and not (keep | block).all():
        raise ValueError(
            "an additive mask holds 0 (may attend) and -1000 or less (may "
            "not); other numbers are a bias, and go where biases go: bias=..."
        )
    return keep


@checked
def draw(mask: Mask) -> str:
    """A mask as text: one row a query, ■ where it may attend, · where not.

    Args:
        mask: (n_q, n_k).

    Raises:
        ValueError: if the mask does not have two axes, or no numbers.

    >>> print(draw(torch.tensor([[True, False, True]])))
    ■ · ■
    """
    if mask.ndim != 2:
        raise ValueError(
            "only a mask with two axes, (n_q, n_k), can be drawn, but it is "
            f"{tuple(mask.shape)}; index the others first"
        )
    if not are_at_hand(mask) or is_of_own_ways(mask):
        raise ValueError(
            "only a mask that is at hand can be drawn, none on meta, within "
            "torch.func or of a class with ways of its own, but it is a "
            f"{type(mask).__name__}, {shown(mask)} on {mask.device}"
        )
    rows = (("■" if seen else "·" for seen in row) for row in mask.tolist())
    return "\n".join(" ".join(row) for row in rows)
