"""The code of the book: each chapter's lives in the module of its name."""

from selfattn.devices.ring import ring_attention
from selfattn.devices.ulysses import ulysses_attention
from selfattn.dot_product import (
    attention,
    attention_steps,
    attention_weights,
    fused_attention,
)
from selfattn.efficient.flash import flash_attention
from selfattn.efficient.linear import linear_attention
from selfattn.efficient.linformer import LinformerAttention
from selfattn.efficient.longformer import longformer_attention
from selfattn.efficient.performer import performer_attention
from selfattn.efficient.reformer import lsh_attention
from selfattn.efficient.sparse import fixed_attention, strided_attention
from selfattn.efficient.swin import swin_attention
from selfattn.efficient.window import sliding_window_attention
from selfattn.multihead import MultiHeadAttention
from selfattn.origins import AdditiveAttention, MultiplicativeAttention

__all__ = [
    "AdditiveAttention",
    "LinformerAttention",
    "MultiHeadAttention",
    "MultiplicativeAttention",
    "attention",
    "attention_steps",
    "attention_weights",
    "fixed_attention",
    "flash_attention",
    "fused_attention",
    "linear_attention",
    "longformer_attention",
    "lsh_attention",
    "performer_attention",
    "ring_attention",
    "sliding_window_attention",
    "strided_attention",
    "swin_attention",
    "ulysses_attention",
]
