"""Two einsums, tokens before heads; True in the mask forbids."""

import torch


def attend(query, key, value, attn_mask=None):
    scale = query.size(-1) ** -0.5
    logits = torch.einsum("bqhd,bkhd->bhqk", query * scale, key)
    if attn_mask is not None:
        logits = logits.masked_fill(attn_mask, torch.finfo(logits.dtype).min)
    probs = torch.softmax(logits, dim=-1)
    return torch.einsum("bhqk,bkhd->bqhd", probs, value)


PATIENT = attend
FACTS = {"layout": "BNHD", "mask": "block", "empty_row": "average"}
INPUTS = {
    "query": "b n h d",
    "key": "b m h d",
    "value": "b m h e",
    "attn_mask?": "block b h n m",
}
