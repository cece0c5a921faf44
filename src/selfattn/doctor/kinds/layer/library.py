"""PyTorch's own layer of attention, and what it has learnt."""

from typing import Any

from torch import nn

from selfattn.doctor.kinds.layer.affine import Affine


def library_layer(module: nn.Module) -> nn.MultiheadAttention | None:
    """PyTorch's module, be it the only one within, if it adds no key."""
    inner = nn.MultiheadAttention
    held = [
        part
        for part in module.modules()
        if isinstance(part, inner) and has_three(part)
    ]
    if len(held) != 1 or isinstance(module, inner):
        return held[0] if held and isinstance(module, inner) else None
    more = held[0].bias_k is not None or held[0].add_zero_attn
    return None if more else held[0]


def has_three(layer: nn.MultiheadAttention) -> bool:
    """Whether its maps for q, k and v are there; a subclass may have others.

    They lie in one matrix, or in three.
    """
    if layer.in_proj_weight is not None:
        return layer.in_proj_weight.shape[0] == 3 * layer.embed_dim
    each = (layer.q_proj_weight, layer.k_proj_weight, layer.v_proj_weight)
    return all(W is not None for W in each)


def torch_own(module: nn.MultiheadAttention) -> dict[str, Affine]:
    """Those of PyTorch's module, whose biases lie in one."""
    biases: Any = (None,) * 3
    if module.in_proj_bias is not None:
        biases = module.in_proj_bias.chunk(3)
    matrices: Any = (
        (module.q_proj_weight, module.k_proj_weight, module.v_proj_weight)
        if module.in_proj_weight is None
        else module.in_proj_weight.chunk(3)
    )
    pairs = zip("qkv", matrices, biases, strict=True)
    every = tuple(module.parameters())
    return {part: Affine(W.mT, b, every) for part, W, b in pairs}
