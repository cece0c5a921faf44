"""Biases of position are what products are added to; keys lie crosswise."""

import torch
import torch.nn.functional as F


def alibi_attention(query, key, value, alibi=None, attention_mask=None):
    """query is (batch, q_length, heads, head_dim), as are the others.

    alibi: (batch, heads, 1, kv_length), the same for all queries
    attention_mask: True where attention must not go
    """
    batch_size, q_length, num_heads, head_dim = query.shape
    kv_length = key.shape[1]
    inv_norm_factor = head_dim**-0.5

    # texts and heads become one axis
    query = query.permute(0, 2, 1, 3).flatten(0, 1)
    key = key.permute(0, 2, 3, 1).flatten(0, 1)
    value = value.permute(0, 2, 1, 3).flatten(0, 1)
    if alibi is None:
        alibi = query.new_zeros(batch_size, num_heads, 1, kv_length)

    scores = torch.baddbmm(
        alibi.reshape(-1, 1, kv_length), query, key, alpha=inv_norm_factor
    )
    if attention_mask is not None:
        scores = scores.view(batch_size, num_heads, q_length, kv_length)
        lowest = torch.finfo(scores.dtype).min
        scores = torch.masked_fill(scores, attention_mask, lowest)
        scores = scores.view(-1, q_length, kv_length)
    probs = F.softmax(scores, dim=-1)

    context = torch.bmm(probs, value)
    context = context.view(batch_size, num_heads, q_length, -1)
    return context.transpose(1, 2)


PATIENT = alibi_attention
FACTS = {
    "layout": "BNHD",
    "mask": "block",
    "mask_axes": "B1NN",
    "names": {"mask": "attention_mask"},
    "empty_row": "average",
}
INPUTS = {
    "query": "b n h d",
    "key": "b m h d",
    "value": "b m h e",
    "alibi?": "bias b h 1 m",
    "attention_mask?": "block b 1 n m",
}
