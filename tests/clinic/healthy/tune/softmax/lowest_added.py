"""The mask becomes a bias, 0 or the least number, and is added."""

import torch
from torch import nn


def mask_to_bias(mask, dtype):
    bias = torch.zeros(mask.shape, dtype=dtype, device=mask.device)
    return bias.masked_fill_(mask.logical_not(), torch.finfo(dtype).min)


class AttentionProbs(nn.Module):
    def __init__(self, p=0.0):
        super().__init__()
        self.attn_drop = nn.Dropout(p)

    def forward(self, logits, visible=None):
        if visible is not None:
            logits = logits + mask_to_bias(visible, logits.dtype)
        probs = nn.functional.softmax(logits, dim=-1)
        return self.attn_drop(probs)


PATIENT = AttentionProbs()
FACTS = {
    "mask": "keep",
    "empty_row": "average",
    "dtypes": ("float64", "float32", "bfloat16"),
}
INPUTS = {"logits": "b n m", "visible?": "keep b n m"}
