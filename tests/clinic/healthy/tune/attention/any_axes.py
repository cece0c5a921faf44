"""Whatever stands in front of tokens and features."""

import torch


def dot_product_attention(q, k, v, mask=None):
    d = q.shape[-1]
    scores = q @ k.mT / d**0.5
    if mask is not None:
        scores = torch.where(mask, scores, -torch.inf)
    return torch.nan_to_num(scores.softmax(-1)) @ v


PATIENT = dot_product_attention
FACTS = {"layout": "any", "mask": "keep", "empty_row": "zeros"}
INPUTS = {"q": "b h n d", "k": "b h m d", "v": "b h m e", "mask?": "keep n m"}
OTHER_INPUTS = [{"q": "n d", "k": "m d", "v": "m e", "mask?": "keep n m"}]
