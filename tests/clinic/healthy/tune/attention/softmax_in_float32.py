"""The softmax of half precision is taken in float32, as in Llama."""

import torch
import torch.nn.functional as F


def eager_attention(query, key, value, attention_mask=None):
    scaling = query.shape[-1] ** -0.5
    weights = torch.matmul(query, key.transpose(2, 3)) * scaling
    if attention_mask is not None:
        weights = weights + attention_mask
    weights = F.softmax(weights, dim=-1, dtype=torch.float32).to(query.dtype)
    return torch.matmul(weights, value).transpose(1, 2).contiguous()


PATIENT = eager_attention
FACTS = {
    "layout": "BHND to BNHD",
    "mask": "add",
    "precision": "float32",
    "empty_row": "nan",
    "dtypes": ("float32", "bfloat16"),
}
INPUTS = {
    "query": "b h n d",
    "key": "b h m d",
    "value": "b h m e",
    "attention_mask?": "add b 1 n m",
}
