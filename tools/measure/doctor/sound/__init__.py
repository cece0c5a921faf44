"""Peers that are sound: each must be called so."""

from tools.measure.doctor.sound import (
    timm_blocks,
    torch_modules,
    transformers_attention,
    transformers_parts,
)

PEERS = (
    *torch_modules.PEERS,
    *transformers_attention.PEERS,
    *transformers_parts.PEERS,
    *timm_blocks.PEERS,
)
