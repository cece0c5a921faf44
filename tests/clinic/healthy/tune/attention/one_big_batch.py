"""Texts and heads as one batch for `baddbmm`; True is masked out."""

import torch
from torch import Tensor


def core_attention(
    query_layer: Tensor,
    key_layer: Tensor,
    value_layer: Tensor,
    attention_mask: Tensor | None = None,
) -> Tensor:
    # [b, np, sq, hn]
    b, np, sq, hn = query_layer.size()
    sk = key_layer.size(2)
    norm_factor = hn**0.5

    # [b, np, sq, hn] -> [b * np, sq, hn]
    query_layer = query_layer.reshape(b * np, sq, hn)
    key_layer = key_layer.reshape(b * np, sk, hn)
    value_layer = value_layer.reshape(b * np, sk, -1)

    # with beta=0 what the buffer holds does not matter
    buffer = query_layer.new_empty(b * np, sq, sk)
    scores = torch.baddbmm(
        buffer,
        query_layer,
        key_layer.transpose(1, 2),
        beta=0.0,
        alpha=1.0 / norm_factor,
    ).view(b, np, sq, sk)

    if attention_mask is not None:
        lowest = torch.finfo(scores.dtype).min
        scores = scores.masked_fill(attention_mask, lowest)
    probs = torch.nn.functional.softmax(scores, dim=-1)

    context = torch.bmm(probs.view(b * np, sq, sk), value_layer)
    return context.view(b, np, sq, -1)


PATIENT = core_attention
FACTS = {
    "layout": "BHND",
    "mask": "block",
    "mask_axes": "B1NN",
    "empty_row": "average",
}
INPUTS = {
    "query_layer": "b h n d",
    "key_layer": "b h m d",
    "value_layer": "b h m e",
    "attention_mask?": "block b 1 n m",
}
