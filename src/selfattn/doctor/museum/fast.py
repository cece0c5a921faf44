"""Mechanisms that save work, and lose something on the way."""

import torch
import torch.nn.functional as F

from selfattn.doctor.museum.entry import room
from selfattn.doctor.museum.modules import D, Sound


@room(
    "huggingface/transformers#pull-26792",
    "2023-10",
    kind="efficient",
    named="one key too many",
    window=3,
    layout="any",
)
def window_and_one_more(q, k, v, causal=False):
    """Mistral's mask for a sliding window let one key too many through.

    The triangle was cut at -window, where it must be -window + 1.
    """
    n_q, n_k = q.shape[-2], k.shape[-2]
    rows = []
    for i in range(n_q):
        own = n_k - n_q + i  # the last query sits on the last key
        first, last = max(0, own - 3), max(0, own + 1 if causal else own + 4)
        seen = slice(first, last)
        row = q[..., i : i + 1, :]
        rows.append(
            F.scaled_dot_product_attention(
                row, k[..., seen, :], v[..., seen, :]
            )
        )
    return torch.cat(rows, dim=-2)


@room(
    "keras-team/keras#23038",
    "2026-06",
    kind="self-attention",
    named="not causal",
    causal=True,
)
class CausalOnTheFastPathAlone(Sound):
    """The causal mask was left to the fused kernel; others went without.

    With dropout, or when the weights were asked for, the future was seen.
    """

    def attend(self, q, k, v, need_weights: bool = True):
        """Choose a path."""
        if not need_weights:
            return F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return super().attend(q, k, v)


@room(
    "huggingface/transformers#48745",
    "2026-09",
    kind="cached-decoder",
    named="not causal",
    versions="transformers 5.9 to 5.18",
    d_model=D,
)
class MaskOfAnEncoder(Sound):
    """Since a clean-up, four models that write saw what they were to guess.

    RoFormer, BigBird, RemBERT and Megatron-BERT made the mask of a reader;
    training on random words, the loss fell to nothing. There is no cache
    here: each word is said with what came before it.
    """

    def forward(self, x, cache=None):
        """Say what a reader would say of all there is so far."""
        whole = x if cache is None else torch.cat((cache, x), dim=1)
        return super().forward(whole)[:, -x.shape[1] :], whole


@room(
    "facebookresearch/pytext#1436",
    "2020-08",
    kind="attention",
    named="mask ignored",
    mask="keep",
)
def taken_and_not_used(q, k, v, mask=None):
    """A reader of a Linformer found its mask among the arguments only."""
    return F.scaled_dot_product_attention(q, k, v)
