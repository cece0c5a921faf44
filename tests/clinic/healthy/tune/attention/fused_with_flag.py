"""PyTorch's function under another name; the first query on the first key."""

import torch.nn.functional as F


def attend(q, k, v, mask=None, is_causal=False):
    return F.scaled_dot_product_attention(
        q, k, v, attn_mask=mask, is_causal=is_causal
    )


PATIENT = attend
FACTS = {
    "layout": "BHND",
    "mask": "keep",
    "alignment": "first",
    "empty_row": "zeros",
}
INPUTS = {
    "q": "b h n d",
    "k": "b h m d",
    "v": "b h m e",
    "mask?": "keep b 1 n m",
}
OTHER_INPUTS = [
    {"q": "b h n d", "k": "b h n d", "v": "b h n e", "is_causal": "true"}
]
