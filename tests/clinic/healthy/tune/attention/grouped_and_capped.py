"""Grouped heads, a cap on the scores, a scale that the model chose."""

import torch
from torch import nn

QUERY_PRE_ATTN_SCALAR = 9
ATTN_LOGIT_SOFTCAPPING = 20.0


def repeat_kv(hidden_states, n_rep):
    batch, num_key_value_heads, slen, head_dim = hidden_states.shape
    if n_rep == 1:
        return hidden_states
    hidden_states = hidden_states[:, :, None, :, :].expand(
        batch, num_key_value_heads, n_rep, slen, head_dim
    )
    return hidden_states.reshape(
        batch, num_key_value_heads * n_rep, slen, head_dim
    )


def eager_attention_forward(query, key, value, mask=None):
    num_key_value_groups = query.shape[1] // key.shape[1]
    key_states = repeat_kv(key, num_key_value_groups)
    value_states = repeat_kv(value, num_key_value_groups)
    scaling = QUERY_PRE_ATTN_SCALAR**-0.5
    attn_weights = torch.matmul(query, key_states.transpose(2, 3)) * scaling

    attn_weights = attn_weights / ATTN_LOGIT_SOFTCAPPING
    attn_weights = torch.tanh(attn_weights)
    attn_weights = attn_weights * ATTN_LOGIT_SOFTCAPPING
    if mask is not None:  # no matter the length, we just slice it
        causal_mask = mask[:, :, :, : key_states.shape[-2]]
        attn_weights = attn_weights + causal_mask

    # upcast attention to fp32
    attn_weights = nn.functional.softmax(
        attn_weights, dim=-1, dtype=torch.float32
    ).to(query.dtype)
    attn_output = torch.matmul(attn_weights, value_states)
    attn_output = attn_output.transpose(1, 2).contiguous()
    return attn_output, attn_weights


PATIENT = eager_attention_forward
FACTS = {
    "layout": "BHND to BNHD",
    "grouped": True,
    "mask": "add",
    "mask_axes": "B1NN",
    "scale": 1 / 3,
    "cap": 20.0,
    "precision": "float32",
    "empty_row": "nan",
    "dtypes": ("float32", "bfloat16"),
}
INPUTS = {
    "query": "b 3*g n d",
    "key": "b g m d",
    "value": "b g m e",
    "mask?": "add b 1 n m",
}
