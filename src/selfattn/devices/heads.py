"""Tensor parallelism: each device has some of the heads, and all tokens."""

import copy
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.device_mesh import DeviceMesh

from selfattn.checks import check_divides, check_tables
from selfattn.dot_product import widen
from selfattn.entering import check_axes
from selfattn.multihead import MultiHeadAttention
from selfattn.signatures import checked, is_plain_tensor


@checked
def tensor_parallel(
    layer: MultiHeadAttention, mesh: DeviceMesh
) -> MultiHeadAttention:
    """The layer with its heads dealt out: each rank has a part of them.

    Of W_q, W_k and W_v each rank keeps the columns of its own heads, and of
    W_o the rows; it sees all tokens. What the ranks bring back is added up:
    one all-reduce of the output on the way there, and on the way back one of
    the gradient of x, and one of the context's if there is a context.

    Args:
        layer: the same on every rank. It is left as it is.
        mesh: the ranks, in one dimension, as `init_device_mesh` makes it.

    Returns:
        A layer that is called as the one given, with the same tokens and
        tables on each rank, and that gives each rank the whole output. The
        parameters of its projections and their gradients are DTensors, and
        its ``heads`` and ``weights`` are those of the rank's own heads. A
        bias that is learned gets on every rank what the heads of all ranks
        pass back to it, at the price of one all-reduce more on the way back;
        and so does each parameter of the mechanism itself, which every rank
        has whole, and which is no DTensor: PyTorch clips the two kinds in
        two calls, and an optimiser with ``foreach`` takes them in two groups.
        Each rank rounds what it adds to the output to the layer's type, as
        PyTorch's own parallel styles do.

    Raises:
        ValueError: if the heads do not come out even, key heads included, if
            they are dealt out already, or if the mesh has more dimensions
            than one. So does the layer, if it is given no text or no token.

    Reference: Shoeybi et al. (2019), section 3.
    """
    # Imported here: it takes longer than the whole package.
    from torch.distributed.tensor import parallel

    if mesh.ndim != 1:
        raise ValueError(
            f"a mesh of one dimension is needed, but it is {mesh}"
        )
    check_whole_matrices(layer)
    n_ranks, n_heads = mesh.size(), layer.n_heads
    shared = "n_kv_heads", layer.n_kv_heads
    check_divides("the number of ranks", n_ranks, *shared)
    layer = copy.deepcopy(layer)
    columns, rows = parallel.ColwiseParallel(), parallel.RowwiseParallel()
    plan = {"W_q": columns, "W_k": columns, "W_v": columns, "W_o": rows}
    sum_whole(layer, mesh)
    parallel.parallelize_module(layer, mesh, plan)
    tell_sizes(layer, n_ranks)

    def deal(_: Any, tokens: tuple, options: dict) -> tuple[tuple, dict]:
        """Hand over the same tokens, and of the tables what is its own."""
        check_heads(options, n_heads)
        first = mesh.get_local_rank() * layer.n_heads
        heads = slice(first, first + layer.n_heads)
        for name, x in options.items():
            if name == "bias" and isinstance(x, Tensor) and x.requires_grad:
                x = Summed.apply(x, mesh)
            is_table = name in ("mask", "bias")
            options[name] = of_heads(x, heads) if is_table else same(x, mesh)
        return tuple(same(x, mesh) for x in tokens), options

    layer.register_forward_pre_hook(deal, with_kwargs=True)
    return layer


def check_whole_matrices(layer: MultiHeadAttention) -> None:
    """Raise if heads were dealt out before: they would be once more."""
    from torch.distributed.tensor import DTensor

    for name, parameter in layer.named_parameters():
        if isinstance(parameter, DTensor):
            raise ValueError(
                "layer must have whole matrices, of which heads can be dealt "
                f"out, but {name} is a DTensor, dealt out already: "
                f"{tuple(parameter.shape)} as {parameter.placements}"
            )


def arrived(layer: Any, given: Any, made: Tensor) -> Tensor:
    """What was added up, as numbers at hand: whether a token is spoilt is
    asked of the sum, which is the same on all ranks.
    """
    return made.clone()


def some_tokens(layer: Any, given: tuple[Tensor]) -> None:
    """Raise unless there is a token: PyTorch cannot deal out what it makes of
    none, and each rank would fail at another place.
    """
    if not given[0].numel():
        raise ValueError(
            "a layer whose heads are dealt out must be given at least 1 text "
            f"of at least 1 token, but it was given {tuple(given[0].shape)}"
        )


def tell_sizes(layer: MultiHeadAttention, n_ranks: int) -> None:
    """Have a layer say what this rank has of it: its heads, and features;
    and what all add up is waited for.
    """
    layer.n_heads //= n_ranks
    layer.n_kv_heads //= n_ranks
    for dealt in (layer.W_q, layer.W_k, layer.W_v):
        dealt.out_features //= n_ranks
        dealt.register_forward_pre_hook(some_tokens)
    layer.W_o.in_features //= n_ranks
    layer.W_o.register_forward_hook(arrived)


def sum_whole(layer: MultiHeadAttention, mesh: DeviceMesh) -> None:
    """What is whole on every rank, the mechanism's own, hears all heads."""
    for name, parameter in layer.named_parameters():
        is_dealt = name.startswith(("W_q.", "W_k.", "W_v.", "W_o."))
        if parameter.requires_grad and not is_dealt:
            parameter.register_hook(lambda grad: summed(grad, mesh))


def same(x: Any, mesh: DeviceMesh) -> Any:
    """Tokens that are known to be the same on all ranks: else each of three
    projections would add up on its own what it passes back to them. What is
    no such tensor the layer itself refuses.
    """
    from torch.distributed.tensor import DTensor, Replicate

    if not is_plain_tensor(x):
        return x
    return DTensor.from_local(x, mesh, [Replicate()], run_check=False)


def check_heads(tables: dict[str, Any], n_heads: int) -> None:
    """Raise unless mask and bias are for all heads: each rank takes its own
    from them, and no rank would see what is wrong with the whole.
    """
    mask, bias = tables.get("mask"), tables.get("bias")
    check_tables(mask, bias)
    check_axes(mask=mask, bias=bias)
    for name, table in (("mask", mask), ("bias", bias)):
        if table is None or table.ndim < 4:
            continue
        if table.shape[-3] not in (1, n_heads):
            raise ValueError(
                f"{name} must be for each of n_heads={n_heads} heads, or for "
                f"all alike, but it is {tuple(table.shape)}"
            )


def of_heads(table: Any, heads: slice) -> Any:
    """Of a mask or bias the part for these heads, if it tells heads apart."""
    if table is None or table.ndim < 3 or table.shape[-3] == 1:
        return table
    return table[..., heads, :, :]


class Summed(torch.autograd.Function):
    """A table as it is; its gradient is the sum of those of all ranks."""

    @staticmethod
    def forward(ctx: Any, x, mesh):
        """Nothing happens."""
        ctx.mesh = mesh
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, grad):
        """Add up what the heads of each rank pass back."""
        return summed(grad, ctx.mesh), None


def summed(grad: Tensor, mesh: DeviceMesh) -> Tensor:
    """What the heads of all ranks pass back to a number that all have."""
    [total] = widen(grad.clone())
    dist.all_reduce(total, group=mesh.get_group())
    return total.to(grad.dtype)
