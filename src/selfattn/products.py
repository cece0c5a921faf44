"""Products: which of PyTorch's operations multiply matrices, and how much.

PyTorch's own counter knows a product by a few of its names. Written in
place, with a vector, in a kernel of its own or inside another operation, it
is one all the same: here are the others. Each is told the shapes of what the
operation is given.
"""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch._ops import HigherOrderOperator
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import (
    conv_flop_count,
    flop_registry,
    sdpa_backward_flop_count,
    sdpa_flop_count,
)

from selfattn.signatures import shown


class Countable(TorchDispatchMode):
    """Raise where a computation does what nobody counts: to say 0, or to
    fall in the counter's own words, would be worse.
    """

    supports_higher_order_operators = True

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        """Look at one operation, and run it."""
        whole = isinstance(func, HigherOrderOperator)
        if whole:
            own = func.name().startswith("flex_attention")
        else:
            own = func.namespace not in OF_PYTORCH
        if own or (not whole and is_untold(func)):
            raise ValueError(
                "operations are counted of PyTorch's plain functions, but "
                f"this one makes its own kernel: {func.name()}"
            )
        for x in tree_leaves((args, kwargs)):
            if isinstance(x, Tensor) and x.is_nested:
                raise ValueError(
                    "operations are counted of tensors that have one shape, "
                    f"but here is {shown(x)}"
                )
        return func(*args, **(kwargs or {}))


def is_untold(operation: Any) -> bool:
    """Whether an operation is called a product, and none is known of it: as
    of a matrix packed into fewer bits, whose shape does not tell its own.
    """
    known = operation.overloadpacket
    if known in PRODUCTS or known in flop_registry:
        return False
    if operation._can_decompose():  # into others, which are asked in turn
        return False
    words = {*known.__name__.split("_")}
    return bool(words & CALLED_PRODUCTS) and not words & NO_PRODUCTS


def of_matrices(a, b, *others, **options) -> int:
    """Operations of a product (..., n, d) times (..., d, m): two for each of
    the n d m numbers that are multiplied. Of several, one behind the other.
    """
    return 2 * math.prod(a) * b[-1]


def of_added(x, a, b, *others, **options) -> int:
    """The same, where something is added."""
    return of_matrices(a, b)


def of_vectors(a, b, *others, **options) -> int:
    """Operations of a matrix or a vector times a vector: two a number."""
    return 2 * math.prod(a)


def of_added_vectors(x, a, b, *others, **options) -> int:
    """The same, where something is added."""
    return of_vectors(a, b)


def of_outer(x, a, b, *others, **options) -> int:
    """Operations of a column times a row, that are added."""
    return 2 * math.prod(a) * math.prod(b)


def of_linear(x, weight, *others, **options) -> int:
    """Operations of a layer's matrix, that stands the other way round."""
    return 2 * math.prod(x) * weight[0]


def of_pairs(one, other, **options) -> int:
    """Of Euclidean distances by a product: their squares are two features
    more.
    """
    return 2 * math.prod(one[:-1]) * other[-2] * (one[-1] + 2)


def of_bilinear(x, weight, y, *others, **options) -> int:
    """Operations of x W y, for each matrix W: of W, and then of a vector."""
    n_out, d_in, d_other = weight[-3:]
    return 2 * (math.prod(x) // d_in) * n_out * d_other * (d_in + 1)


def of_convolved(x, weight, *others, out_shape, **options) -> int:
    """Operations of a convolution along the first axis: (n, batch, d)."""
    width, d_in, d_out = weight
    turned = (x[1], d_in, x[0]), (d_out, d_in, width)
    return conv_flop_count(*turned, (x[1], d_out, out_shape[0]))


def of_many(all_a, all_b, *others, **options) -> int:
    """Operations of several products at once."""
    return sum(map(of_matrices, all_a, all_b))


def of_groups(a, b, *others, **options) -> int:
    """Operations of products of a batch that is cut into groups."""
    n_groups = a[0] if len(a) == len(b) == 3 else 1
    return 2 * n_groups * a[-2] * a[-1] * b[-1]


def of_lstm(x, w_in, w_kept, *others, **options) -> int:
    """Operations of a layer of an LSTM, which has a kernel of its own."""
    return 2 * math.prod(x[:-1]) * (math.prod(w_in) + math.prod(w_kept))


def of_lstm_back(x, w_in, w_kept, *others, **options) -> int:
    """Of its way back: of each product two."""
    return 2 * of_lstm(x, w_in, w_kept)


def of_recurrent(x, weights, *others, **options) -> int:
    """Operations of all layers of a recurrent network, on a GPU."""
    return 2 * math.prod(x[:-1]) * sum(map(math.prod, matrices_of(weights)))


def of_recurrent_back(x, weights, *others, **options) -> int:
    """Of its way back: of each product two."""
    return 2 * of_recurrent(x, weights)


def matrices_of(shapes) -> list[Any]:
    """Those that are multiplied; the others are added."""
    return [shape for shape in shapes if len(shape) == 2]


def of_multihead(q, k, v, d, n_heads, *others, **options) -> int:
    """Operations of PyTorch's own layer, where that has a kernel."""
    of_weights = 2 * d * d * (2 * math.prod(q[:-1]) + 2 * math.prod(k[:-1]))
    return of_weights + 4 * d * math.prod(q[:-1]) * k[1]


def of_encoder_layer(x, d, n_heads, *others, **options) -> int:
    """The same, and a feed-forward layer behind it."""
    d_ff = others[11][0]
    return of_multihead(x, x, x, d, n_heads) + 4 * math.prod(x) * d_ff


def of_fused(q, k, v, *others, **options) -> int:
    """Operations of the fused kernel, by its inputs' shapes: two products."""
    return sdpa_flop_count(q, k, v)


def of_fused_back(output, q, k, v, *others, **options) -> int:
    """Of its backward pass: five products, the scores being made anew."""
    return sdpa_backward_flop_count(output, q, k, v)


# Whose products are known. Others are kernels of somebody's own, as those of
# quantized layers: nobody knows what they multiply.
OF_PYTORCH = {
    *("aten", "prim", "prims", "rngprims", "profiler"),
    *("c10d", "_c10d_functional", "_dtensor", "inductor"),
}
# What stands in the names of its other products, and of none.
CALLED_PRODUCTS = {
    *("mm", "addmm", "matmul", "linear", "rnn", "gru", "lstm"),
    *("convolution", "conv2d", "conv3d", "depthwise2d", "depthwise3d"),
    # A power series, an inverse of any shape, and Householder's reflections
    # are made of products, in kernels that tell none of them.
    *("matrix", "pinv", "ormqr", "householder"),
}
NO_PRODUCTS = {"cell", "flatten", "reorder"}
# By the names of PyTorch's operations, of which its counter counts none.
BY_NAME: dict[str, Callable[..., int]] = {
    "addmm_": of_added,
    "baddbmm_": of_added,
    "addbmm": of_added,
    "addbmm_": of_added,
    "_addmm_activation": of_added,
    "_sparse_addmm": of_added,
    "sspaddmm": of_added,
    "hspmm": of_matrices,
    "_sparse_sparse_matmul": of_matrices,
    "_int_mm": of_matrices,
    "_weight_int8pack_mm": of_linear,
    "_foreach_mm": of_many,
    "_grouped_mm": of_groups,
    "linear": of_linear,
    "mkldnn_linear": of_linear,
    "mv": of_vectors,
    "dot": of_vectors,
    "vdot": of_vectors,
    "addmv": of_added_vectors,
    "addmv_": of_added_vectors,
    "addr": of_outer,
    "addr_": of_outer,
    "_euclidean_dist": of_pairs,
    "_trilinear": of_bilinear,
    "conv_tbc": of_convolved,
    "mkldnn_rnn_layer": of_lstm,
    "mkldnn_rnn_layer_backward": of_lstm_back,
    "_cudnn_rnn": of_recurrent,
    "_cudnn_rnn_backward": of_recurrent_back,
    "_native_multi_head_attention": of_multihead,
    "_transformer_encoder_layer_fwd": of_encoder_layer,
    "_scaled_dot_product_flash_attention_for_cpu": of_fused,
    "_scaled_dot_product_flash_attention_for_cpu_backward": of_fused_back,
    "_scaled_dot_product_fused_attention_overrideable": of_fused,
}
# Some of them are not in every version.
PRODUCTS = {
    getattr(torch.ops.aten, name): count
    for name, count in BY_NAME.items()
    if hasattr(torch.ops.aten, name)
}
