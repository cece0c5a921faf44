"""PyTorch's own multi-head layer: what it has in common with ours.

`MultiHeadAttention.from_torch` and `MultiHeadAttention.to_torch` copy weights
one way and the other. Here is what they must know of the other layer: with
which options it agrees with ours, and where it keeps which weights.
"""

from typing import Any

from torch import Tensor, nn

from selfattn.dot_product import attention, fused_attention


def options_of(layer: nn.MultiheadAttention) -> dict[str, Any]:
    """What our layer is to be made with, to compute the same.

    Raises:
        ValueError: if PyTorch's has what ours does not: a key or value made
            up (``add_bias_kv``, ``add_zero_attn``), or keys and values of
            different widths.
    """
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
        "projection_bias": layer.in_proj_bias is not None,
        "dropout": layer.dropout,
    }


def torch_layer_like(ours: Any) -> nn.MultiheadAttention:
    """PyTorch's layer of the widths, heads and type of ours, batch first.

    Raises:
        ValueError: if key heads are shared, if queries and keys are rotated,
            or if the mechanism is not `attention` itself or
            `fused_attention`; PyTorch's layer can do none of it.
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
    layer = nn.MultiheadAttention(
        ours.W_q.in_features,
        ours.n_heads,
        dropout=ours.dropout,
        bias=ours.W_q.bias is not None,
        kdim=ours.W_k.in_features,
        vdim=ours.W_v.in_features,
        batch_first=True,
        device=ours.W_o.weight.device,
        dtype=ours.W_o.weight.dtype,
    )
    return layer.train(ours.training)


def pair_up(
    ours: Any, torchs: nn.MultiheadAttention
) -> list[tuple[Tensor, Tensor]]:
    """Our parameters beside PyTorch's views of the same ones.

    PyTorch keeps the three input projections in one matrix when they have
    one width, and in three otherwise; their biases always in one vector.
    """
    projections = ours.W_q, ours.W_k, ours.W_v
    if torchs.in_proj_weight is not None:
        inward = torchs.in_proj_weight.chunk(3)
    else:
        inward = [getattr(torchs, f"{x}_proj_weight") for x in "qkv"]
    pairs = [(p.weight, w) for p, w in zip(projections, inward, strict=True)]
    pairs.append((ours.W_o.weight, torchs.out_proj.weight))
    if ours.W_q.bias is not None:
        own = (p.bias for p in projections)
        pairs += zip(own, torchs.in_proj_bias.chunk(3), strict=True)
        pairs.append((ours.W_o.bias, torchs.out_proj.bias))
    return pairs
