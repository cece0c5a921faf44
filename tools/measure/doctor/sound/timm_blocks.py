"""Timm's attention and its block."""

from random import Random

from tools.measure.doctor.peer import (
    Made,
    heads,
    of_bert,
    peer,
)

TIMM = (
    "timm needs torchvision; where that is made for CUDA and finds none, its "
    "operators must be declared before it is imported"
)


@peer("timm's Attention", "timm", "self-attention", note=TIMM)
def timm_attention(draw: Random) -> Made:
    """The attention of timm's vision transformers."""
    from timm.models.vision_transformer import Attention

    size = heads(draw)
    setting = {
        "qkv_bias": draw.random() < 0.5,
        "proj_bias": draw.random() < 0.5,
    }
    made = Attention(size["d_model"], num_heads=size["n_heads"], **setting)
    made.fused_attn = draw.random() < 0.5
    facts = of_bert(setting) | {"takes": ["float64", "bfloat16"]}
    return made, facts, size | setting | {"fused": made.fused_attn}


@peer("timm's Block", "timm", "encoder-block", note=TIMM)
def timm_block(draw: Random) -> Made:
    """The block of timm's vision transformers."""
    from timm.models.vision_transformer import Block

    size = heads(draw)
    made = Block(size["d_model"], num_heads=size["n_heads"])
    facts = {"order": "pre", "mask": "keep", "takes": []}
    return made, facts, size


PEERS = (
    timm_attention,
    timm_block,
)
