"""The code of the book: each chapter's lives in the module of its name."""

from selfattn.dot_product import (
    attention,
    attention_steps,
    attention_weights,
    fused_attention,
)
from selfattn.efficient.flash import flash_attention
from selfattn.efficient.linear import linear_attention
from selfattn.efficient.swin import swin_attention
from selfattn.efficient.window import sliding_window_attention
from selfattn.multihead import MultiHeadAttention
from selfattn.origins import AdditiveAttention, MultiplicativeAttention

__all__ = [
    "AdditiveAttention",
    "MultiHeadAttention",
    "MultiplicativeAttention",
    "attention",
    "attention_steps",
    "attention_weights",
    "flash_attention",
    "fused_attention",
    "linear_attention",
    "sliding_window_attention",
    "swin_attention",
]
