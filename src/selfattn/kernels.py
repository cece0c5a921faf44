"""PyTorch's fused kernels; and its attention in steps, where they fall short.

They have no derivative that is carried along forwards, and none of another
by `torch.func`; and on a processor they lose a NaN, and on the way back the
number of keys, if their scores are large.
"""

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from selfattn.checks import batch_shape, is_autocast
from selfattn.infinite import largest_number
from selfattn.pieces import without_autocast
from selfattn.spoilt import can_look, drawing_once, largest
from selfattn.transforms import is_beyond_fused_kernels, is_learned_around

Kernel = Callable[..., Tensor]
LANES = 16  # numbers that a processor takes at a time, at most
ROOM = 2.0**-6  # how far off a weight may be on the way back


def fused(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    attn_mask: Tensor | None = None,
    scale: float | None = None,
    **options: Any,
) -> Tensor:
    """`F.scaled_dot_product_attention`, with all derivatives and every NaN.

    >>> q = torch.full((1, 1, 2, 3), torch.nan)
    >>> fused(q, q, q).isnan().all()
    tensor(True)
    """
    options |= {"attn_mask": attn_mask, "scale": scale}
    kernel: Any = by_kernel
    steps: Any = in_steps
    if options.get("dropout_p"):
        kernel, steps = drawing_once(q, kernel, steps)
    beyond = is_beyond_fused_kernels() or is_learned_around(attn_mask)
    if beyond or is_overscaled(q, k, scale):
        return steps(q, k, v, **options)
    output = kernel(q, k, v, **options)
    if loses_count(output, q, k, attn_mask, scale):
        return steps(q, k, v, large=True, **options).to(output.dtype)
    if not can_look(output):  # nor may the number of keys decide, in a trace
        return output
    safe = q.element_size() >= 4 and k.shape[-2] >= LANES
    if safe and attn_mask is None and not options.get("is_causal"):
        return output
    if loses_nan(output, q, k, attn_mask, scale):
        return steps(q, k, v, **options).to(output.dtype)
    return output


def by_kernel(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    attn_mask: Tensor | None = None,
    **options: Any,
) -> Tensor:
    """PyTorch's kernel on queries that share no numbers.

    On a processor it makes of a signal's windows, whose rows overlap, what
    stood in memory before.

    >>> q = torch.arange(4.0).unfold(0, 3, 1)[None, None]
    >>> output = by_kernel(q, *torch.ones(2, 1, 1, 5, 3))
    >>> output.equal(torch.ones(1, 1, 2, 3))
    True
    """
    if can_look(q) and overlap(q):
        q = q.contiguous()
    return F.scaled_dot_product_attention(q, k, v, attn_mask, **options)


def overlap(x: Tensor) -> bool:
    """Whether rows share numbers, and are not all the same.

    >>> x = torch.arange(6)
    >>> overlap(x.unfold(0, 3, 1)), overlap(x.view(2, 3).mT)
    (True, False)
    >>> overlap(x.expand(2, 6))
    False
    """
    if x.is_contiguous():
        return False
    steps = sorted(zip(x.stride(), x.shape, strict=True))
    reach = 1  # how many numbers the axes before cover
    for step, n in steps:
        if 0 < step < reach and n > 1:
            return True
        reach += step * (n - 1)
    return False


def by_pytorch(q: Tensor, k: Tensor, v: Tensor, **options: Any) -> Tensor:
    """PyTorch's kernel, on any number of axes."""
    # Its fused kernels want four. With fewer, the same call quietly builds
    # the n_q × n_k table that it exists to avoid; and without queries,
    # keys, features or sequences it loses axes that others broadcast to.
    batch = batch_shape(q, k, v)
    missing = max(0, 4 - len(batch) - 2)
    sizes = *batch, q.shape[-2], k.shape[-2], v.shape[-1]
    if missing or 0 in sizes:
        q, k, v = (x.expand(*batch, -1, -1) for x in (q, k, v))
        q, k, v = (x[(None,) * missing] for x in (q, k, v))
    output = fused(q, k, v, **options)
    return output[(0,) * missing] if missing else output


def keeping_nan(
    attend: Callable[[Kernel], Tensor],
    q: Tensor,
    k: Tensor,
    table: Tensor | None = None,
) -> Tensor:
    """What is made by the fused kernel; or, if that loses a NaN, in steps.

    Args:
        attend: makes an output of q and k, (..., n_q, d_v), by calls of this
            kernel; each adds parts of the table, or minus infinity.
        q: queries, (..., n_q, d).
        k: keys, (..., n_k, d).
        table: what is added to scores.
    """
    output = attend(by_kernel)
    return attend(in_steps) if loses_nan(output, q, k, table) else output


def in_steps(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    attn_mask: Tensor | None = None,
    scale: float | None = None,
    large: bool = False,
    **options: Any,
) -> Tensor:
    """The same by PyTorch's products and softmax, with the table of weights.

    Not within `torch.nn.attention.sdpa_kernel`, which is for all threads: it
    left another's attention without its kernels for good. Nor by PyTorch's
    own steps where scores are large: those multiply q and k by the root of
    the scale, which rounds, and equal scores of a million come apart.
    """
    q, k, v = (x.to(taken_as(q)) for x in (q, k, v))
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        hidden = q.new_zeros(attn_mask.shape)
        attn_mask = hidden.masked_fill(~attn_mask, -math.inf)
    if large or (scale is not None and abs(scale) > 1):
        return by_products(q, k, v, attn_mask, scale, **options)
    attend = torch.ops.aten._scaled_dot_product_attention_math
    return attend(q, k, v, attn_mask, scale=scale, **options)[0]


def taken_as(q: Tensor) -> torch.dtype:
    """The type in which PyTorch's attention takes queries."""
    if is_autocast(q) and q.dtype != torch.float64:
        return torch.get_autocast_dtype(q.device.type)
    return q.dtype


def is_overscaled(q: Tensor, k: Tensor, scale: float | None) -> bool:
    """Whether a query or a key, times the root of the scale, is infinite.

    So PyTorch multiplies them on some ways, as where a bias is trained or
    values are wider than keys; and 0 · ∞ is NaN though the key be hidden.

    >>> far = torch.full((1, 1), 3e38)
    >>> is_overscaled(far, far, 2.0), is_overscaled(far, far, 1.0)
    (True, False)
    """
    if scale is None or abs(scale) <= 1:
        return False
    most = torch.finfo(taken_as(q)).max / math.sqrt(abs(scale))
    return any(
        x.numel() > 0 and largest(x) > most for x in (q, k) if can_look(x)
    )


@without_autocast
def by_products(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    added: Tensor | None,
    scale: float | None,
    *,
    is_causal: bool = False,
    dropout_p: float = 0.0,
) -> Tensor:
    """The same once more, in which only scores are scaled.

    PyTorch multiplies queries and keys by the root of the scale. By one above
    1, a key of the largest numbers is infinite then; and where it is hidden,
    what it passes back is 0 · ∞.

    >>> q, far = torch.ones(1, 1, requires_grad=True), torch.tensor(3e38)
    >>> k, added = torch.stack([q[0], far[None]]), torch.tensor([0, -math.inf])
    >>> made = by_products(q, k.detach(), k.detach(), added, -2.0)
    >>> torch.autograd.grad(made.sum(), q)
    (tensor([[0.]]),)
    """
    wide = torch.promote_types(q.dtype, torch.float32)
    rows, keys, values = (x.to(wide) for x in (q, k, v))
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    scores = (rows @ keys.mT) * scale
    if is_causal:
        later = torch.ones_like(scores, dtype=torch.bool).triu(1)
        scores = scores.masked_fill(later, -math.inf)
    if added is not None:
        scores = scores + added
    weights = torch.ops.aten._safe_softmax(scores, -1)
    return (F.dropout(weights, dropout_p) @ values).to(q.dtype)


def loses_nan(
    output: Tensor,
    q: Tensor,
    k: Tensor,
    table: Tensor | None = None,
    scale: float | None = None,
) -> bool:
    """Whether a query got zeros from a kernel that should have got NaN.

    A query whose scores are all NaN, of fewer keys than a processor takes at
    a time, is taken for one that sees no key; in half precision, one with an
    infinite score is.

    Args:
        output: of the kernel, (..., n_q, d_v).
        q: queries, (..., n_q, d).
        k: keys, (..., n_k, d).
        table: what was added to the scores, or who may attend.
        scale: what scores were multiplied by.
    """
    if not can_look(output) or 0 in output.shape or not k.numel():
        return False
    # By numbers alone: a table of what is zero would take memory that grows.
    column = output[..., 0]
    if int(column.count_nonzero()) == column.numel():  # as nearly always
        return False
    if not is_out_of_reach(q, k, table, scale):
        return False
    return bool((output == 0).all(dim=-1).any())


def is_out_of_reach(
    q: Tensor, k: Tensor, table: Tensor | None, scale: float | None
) -> bool:
    """Whether a score may be NaN or infinite: for all that is known of how
    far from zero the numbers are.
    """
    reach = largest(q) * largest(k) * q.shape[-1] * max(1.0, abs(scale or 1.0))
    if table is not None and table.is_floating_point():
        most = table.detach().amax().item()
        reach += 0.0 if most < 0 else most  # -inf hides; NaN is not below 0
    wide = torch.promote_types(q.dtype, torch.float32)
    return not reach < torch.finfo(wide).max


def loses_count(
    output: Tensor,
    q: Tensor,
    k: Tensor,
    table: Tensor | None = None,
    scale: float | None = None,
) -> bool:
    """Whether the kernel's gradient may have lost how many keys there are.

    It makes the weights anew from one number a query, the logarithm of their
    sum: score + log n, if n scores are alike. Of a score of 10⁹ nothing is
    left of log n in float32; each weight comes back as 1 instead of 1/n.

    Args:
        output: of the kernel, (..., n_q, d_v).
        q: queries, (..., n_q, d).
        k: keys, (..., n_k, d).
        table: what was added to the scores, or who may attend.
        scale: what scores were multiplied by; 1/√d if None.
    """
    if not (output.requires_grad and can_look(output)):
        return False
    if not (q.numel() and k.numel()):
        return False
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else abs(scale)
    # Of what is a number: one that is none may be of another sequence.
    far = largest_number(q) * largest_number(k)  # infinity, of float64
    reach = far * q.shape[-1] * scale
    if table is not None and table.is_floating_point():
        # Of each query's largest: what is far below them has no weight.
        reach += largest_number(table.detach().amax(dim=-1))
    wide = torch.promote_types(q.dtype, torch.float32)
    return ROOM / torch.finfo(wide).eps < reach
