"""PyTorch's function for tensors with the tokens first."""

import torch.nn.functional as F


def attend(q, k, v, key_mask=None):
    q, k, v = (t.transpose(1, 2) for t in (q, k, v))
    allowed = None if key_mask is None else key_mask[:, None, None, :]
    out = F.scaled_dot_product_attention(q, k, v, attn_mask=allowed)
    return out.transpose(1, 2)


PATIENT = attend
FACTS = {
    "layout": "BNHD",
    "mask": "keep",
    "mask_axes": "BN",
    "empty_row": "zeros",
}
INPUTS = {
    "q": "b n h d",
    "k": "b m h d",
    "v": "b m h e",
    "key_mask?": "keep b m",
}
