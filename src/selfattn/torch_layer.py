"""PyTorch's own multi-head layer: what it has in common with ours.

`MultiHeadAttention.from_torch` and `MultiHeadAttention.to_torch` copy weights
one way and the other. Here is what they must know of the other layer: with
which options it agrees with ours, and where it keeps which weights.
"""

import inspect
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.parametrize import is_parametrized

from selfattn.dot_product import attention, fused_attention

OF_LINEAR = ("weight", "bias")


def options_of(layer: nn.MultiheadAttention) -> dict[str, Any]:
    """What our layer is to be made with, to compute the same.

    Raises:
        ValueError: if PyTorch's has what ours does not: a key or value made
            up (``add_bias_kv``, ``add_zero_attn``), keys and values of
            different widths, a way of its own to compute, hooks, or weights
            of different types.
    """
    check_theirs(layer)
    if layer.bias_k is not None or layer.add_zero_attn:
        raise ValueError(
            "keys that come from nowhere cannot be copied, but "
            f"add_bias_kv={layer.bias_k is not None} and "
            f"add_zero_attn={layer.add_zero_attn}"
        )
    if layer.kdim != layer.vdim:
        raise ValueError(
            "keys and values must come from one context, but "
            f"kdim={layer.kdim} and vdim={layer.vdim}"
        )
    return {
        "d_model": layer.embed_dim,
        "n_heads": layer.num_heads,
        "d_context": layer.kdim,
        "projection_bias": any(x is not None for x in biases_of(layer)),
        "dropout": layer.dropout,
    }


def without_numbers(ours: type, layer: nn.MultiheadAttention) -> Any:
    """A layer of ours whose weights are to be copied from PyTorch's: to draw
    some, only to write over them, would change what is drawn next.

    Raises:
        TypeError: if a subclass is made with other arguments.
    """
    weight, options = layer.out_proj.weight, options_of(layer)
    takes = inspect.signature(ours)
    try:
        takes.bind(**options)
    except TypeError as error:
        raise TypeError(
            f"{ours.__name__} must be made with {', '.join(options)} alone, "
            "by name, to be made of nn.MultiheadAttention, but it takes "
            f"{takes}: {error}"
        ) from None
    with torch.device("meta"):
        made = ours(**options).to(weight.dtype)
    return made.to_empty(device=weight.device)


def torch_layer_like(ours: Any) -> nn.MultiheadAttention:
    """PyTorch's layer of the widths, heads and type of ours, batch first.

    Raises:
        ValueError: if key heads are shared, if queries and keys are rotated,
            if the mechanism is not `attention` itself or `fused_attention`,
            or if a projection does more than multiply by its weight, or has
            a type of its own; PyTorch's layer can do none of it. And if hooks
            hang in it, which would be lost.
    """
    if ours.rotate is not None:
        raise ValueError(
            "nn.MultiheadAttention does not rotate queries and keys, but "
            f"rotate={ours.rotate}"
        )
    if ours.n_kv_heads != ours.n_heads:
        raise ValueError(
            "nn.MultiheadAttention has one key head a query head, but "
            f"n_heads={ours.n_heads} and n_kv_heads={ours.n_kv_heads}"
        )
    if ours.attend not in (attention, fused_attention):
        raise ValueError(
            "nn.MultiheadAttention computes `attention` and nothing else, but "
            f"attend={ours.attend}; if that is the same, set "
            "layer.attend = attention first"
        )
    check_plain(ours)
    layer = nn.MultiheadAttention(
        *(ours.W_q.in_features, ours.n_heads),
        dropout=ours.dropout,
        bias=any(layer.bias is not None for layer in projections_of(ours)),
        kdim=ours.W_k.in_features,
        vdim=ours.W_v.in_features,
        batch_first=True,
        device="meta",  # else it would draw numbers, as in `without_numbers`
        dtype=ours.W_o.weight.dtype,
    )
    there = ours.W_o.weight.device
    return layer.to_empty(device=there).train(ours.training)


@torch.enable_grad()  # what is made of trained weights is trained, too
def pair_up(
    ours: Any, torchs: nn.MultiheadAttention
) -> list[tuple[Tensor, Tensor]]:
    """Our parameters beside PyTorch's views of the same ones.

    PyTorch keeps the three input projections in one matrix when they have
    one width, and in three otherwise; their biases always in one vector.
    Where only one of two layers has a bias, it stands beside zeros.
    """
    *projections, outward = projections_of(ours)
    if torchs.in_proj_weight is not None:
        inward = torchs.in_proj_weight.chunk(3)
    else:
        inward = [getattr(torchs, f"{x}_proj_weight") for x in "qkv"]
    pairs = [(p.weight, w) for p, w in zip(projections, inward, strict=True)]
    pairs.append((outward.weight, torchs.out_proj.weight))
    theirs = biases_of(torchs)
    for projection, bias in zip(projections_of(ours), theirs, strict=True):
        one = projection.bias if bias is None else bias
        if one is not None:
            zeros = torch.zeros_like(one)
            both = (projection.bias, bias)
            mine, its = (zeros if x is None else x for x in both)
            pairs.append((mine, its))
    return pairs


def copied(pairs: list[tuple[Tensor, Tensor]]) -> None:
    """Copy the second of each pair, and whether it is trained, to the first:
    a matrix that holds several is trained if one of them is.
    """
    trained: dict[int, bool] = {}
    for to, weight in pairs:
        whole = to if to._base is None else to._base
        before = trained.get(id(whole), False)
        trained[id(whole)] = before or weight.requires_grad
        to.data.copy_(weight)
        whole.requires_grad_(trained[id(whole)])


def projections_of(ours: Any) -> tuple[nn.Linear, ...]:
    """The four, in the order of PyTorch's weights."""
    return ours.W_q, ours.W_k, ours.W_v, ours.W_o


def biases_of(layer: nn.MultiheadAttention) -> list[Tensor | None]:
    """Those of PyTorch's four projections; None where there is none."""
    inward = layer.in_proj_bias
    three = [None] * 3 if inward is None else [*inward.chunk(3)]
    return [*three, layer.out_proj.bias]


def check_theirs(layer: nn.MultiheadAttention) -> None:
    """Raise unless PyTorch's layer computes by its weights as they stand
    there, and all are of one type. One that is to be quantised has others.
    """
    own = getattr(type(layer), "forward", None)
    names = (
        "in_proj_weight",
        "in_proj_bias",
        *(f"{x}_proj_weight" for x in "qkv"),
    )
    anew = [name for name in names if is_made_anew(layer, name)]
    anew += [name for name in OF_LINEAR if is_made_anew(layer.out_proj, name)]
    if own is not nn.MultiheadAttention.forward or anew:
        raise ValueError(
            "the weights of nn.MultiheadAttention can be copied, but layer is "
            f"{type(layer).__name__} of {type(layer).__module__}"
            f"{', pruned or normed' if anew else ''}"
        )
    for name, weight in layer.named_parameters():
        check_not_dealt(name, weight)
    check_no_hooks(layer)
    types = {x.dtype for x in layer.parameters()}
    if len(types) > 1:
        raise ValueError(
            f"layer must have weights of one type, but it has {types}"
        )


def check_own_ways(layer: nn.Module, ours: type) -> None:
    """Raise if a subclass of ours computes in a way of its own."""
    ways = ("forward", "heads", "keys_values")
    other = [
        x for x in ways if getattr(type(layer), x) is not getattr(ours, x)
    ]
    if other:
        raise ValueError(
            "nn.MultiheadAttention computes what MultiHeadAttention does, but "
            f"{type(layer).__name__} has {' and '.join(other)} of its own"
        )


def check_plain(ours: Any) -> None:
    """Raise unless each projection is a product with its weight, as it stands
    there, and all are of one type: a copy of it would be another layer.
    """
    for name in ("W_q", "W_k", "W_v", "W_o"):
        layer = getattr(ours, name)
        plain = getattr(type(layer), "forward", None) is nn.Linear.forward
        if not plain or any(is_made_anew(layer, x) for x in OF_LINEAR):
            raise ValueError(
                "nn.MultiheadAttention takes the weights of nn.Linear, but "
                f"{name} is {layer}{', pruned or normed' if plain else ''}"
            )
        check_not_dealt(f"{name}.weight", layer.weight)
        if layer.weight.is_meta:
            raise ValueError(
                f"{name} must have numbers to copy, but its weight is on meta"
            )
        if layer.weight.dtype != ours.W_q.weight.dtype:
            raise ValueError(
                "nn.MultiheadAttention has weights of one type, but those of "
                f"W_q are {ours.W_q.weight.dtype} and those of {name} are "
                f"{layer.weight.dtype}"
            )
    check_no_hooks(ours)


def check_no_hooks(layer: nn.Module) -> None:
    """Raise if hooks hang in a layer that run as it computes: a copy would be
    without them, and its caller not know.
    """
    for name, part in (*layer.named_modules(), *layer.named_parameters()):
        hooks = [kind for kind in dir(part) if hangs_in(part, kind)]
        if hooks:
            raise ValueError(
                "hooks are not copied with the weights; take them away first, "
                f"and hang them in the copy, but {', '.join(hooks)} of "
                f"{name or type(layer).__name__} has some"
            )


def hangs_in(part: nn.Module | Tensor, kind: str) -> bool:
    """Whether a part has a hook of a kind, by the name of what keeps those.

    Those of state dicts are of how it is saved, as weights that are computed
    have them, and do not count.
    """
    counts = kind.endswith("_hooks") and "state_dict" not in kind
    kept = getattr(part, kind) if counts else None
    return isinstance(kept, dict) and bool(kept)


def check_not_dealt(name: str, weight: Tensor) -> None:
    """Raise if a rank has a part of a weight, which cannot be copied."""
    if hasattr(weight, "placements"):
        raise ValueError(
            f"{name} must be whole to be copied, but it is a DTensor, dealt "
            f"out to ranks: {tuple(weight.shape)} as {weight.placements}"
        )


def is_made_anew(layer: nn.Module, name: str) -> bool:
    """Whether a weight is made in each call, as by pruning: what stands there
    may be of before the last step of training.
    """
    return not (name in layer._parameters or is_parametrized(layer, name))
