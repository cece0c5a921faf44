"""PyTorch's own modules and functions."""

from random import Random
from typing import Any

import torch.nn.functional as F
from torch import nn

from tools.measure.doctor.peer import (
    Made,
    heads,
    of_multihead,
    peer,
)


@peer("F.scaled_dot_product_attention", "torch", "attention")
def fused(draw: Random) -> Made:
    """PyTorch's function, behind two layouts and two meanings of a mask."""
    layout = draw.choice(("BHND", "BNHD"))
    meaning = draw.choice(("keep", "add", "block"))

    def attend(q, k, v, mask=None, is_causal=False):
        if meaning == "block" and mask is not None:
            mask = ~mask
        if layout == "BNHD":
            q, k, v = (x.transpose(1, 2) for x in (q, k, v))
        made = F.scaled_dot_product_attention(q, k, v, mask, 0.0, is_causal)
        return made.transpose(1, 2) if layout == "BNHD" else made

    facts = {"layout": layout, "mask": meaning, "mask_axes": "any"}
    return attend, facts, facts


@peer("nn.MultiheadAttention, self", "torch", "self-attention")
def multihead(draw: Random) -> Made:
    """PyTorch's layer on itself."""
    size = heads(draw)
    setting = {
        "bias": draw.random() < 0.5,
        "batch_first": draw.random() < 0.5,
        "dropout": draw.choice((0.0, 0.1)),
    }
    layer = nn.MultiheadAttention(*size.values(), **setting)
    weights = draw.random() < 0.5
    facts = of_multihead(layer, weights)
    return layer, facts, size | setting | {"need_weights": weights}


@peer("nn.MultiheadAttention, cross", "torch", "cross-attention")
def multihead_across(draw: Random) -> Made:
    """PyTorch's layer on a context of another width."""
    size = heads(draw)
    d_context = draw.choice((3, 5, 8, size["d_model"]))
    setting = {
        "batch_first": draw.random() < 0.5,
        "kdim": d_context,
        "vdim": d_context,
    }
    layer = nn.MultiheadAttention(*size.values(), **setting)
    facts = of_multihead(layer, draw.random() < 0.5)
    del facts["causal"]
    return layer, facts, size | setting


def torch_block(draw: Random) -> tuple[dict[str, Any], dict[str, Any]]:
    """Arguments of PyTorch's blocks."""
    size = heads(draw)
    setting = {
        "dim_feedforward": draw.choice((5, 11, 16)),
        "norm_first": draw.random() < 0.5,
        "batch_first": draw.random() < 0.5,
        "activation": draw.choice(("relu", "gelu")),
        "bias": draw.random() < 0.5,
        "dropout": draw.choice((0.0, 0.1)),
    }
    names = {"d_model": size["d_model"], "nhead": size["n_heads"]}
    return names | setting, {}


@peer("nn.TransformerEncoderLayer", "torch", "encoder-block")
def torch_encoder(draw: Random) -> Made:
    """PyTorch's encoder block."""
    setting, facts = torch_block(draw)
    return nn.TransformerEncoderLayer(**setting), facts, setting


@peer("nn.TransformerDecoderLayer", "torch", "decoder-block")
def torch_decoder(draw: Random) -> Made:
    """PyTorch's decoder block."""
    setting, facts = torch_block(draw)
    return nn.TransformerDecoderLayer(**setting), facts, setting


@peer("nn.LayerNorm", "torch", "layer-norm")
def torch_layer_norm(draw: Random) -> Made:
    """PyTorch's LayerNorm."""
    setting = {
        "d": draw.randint(2, 17),
        "eps": draw.choice((1e-3, 1e-5, 1e-6)),
    }
    return nn.LayerNorm(setting["d"], eps=setting["eps"]), {}, setting


@peer("nn.RMSNorm", "torch", "rms-norm")
def torch_rms_norm(draw: Random) -> Made:
    """PyTorch's RMSNorm."""
    setting = {
        "d": draw.randint(2, 17),
        "eps": draw.choice((1e-3, 1e-5, 1e-6)),
    }
    return nn.RMSNorm(setting["d"], eps=setting["eps"]), {}, setting


PEERS = (
    fused,
    multihead,
    multihead_across,
    torch_encoder,
    torch_decoder,
    torch_layer_norm,
    torch_rms_norm,
)
