"""The mask is what the product of queries and keys is added onto."""

import math

import torch


def _scaled_dot_product_attention(q, k, v, attn_mask=None, dropout_p=0.0):
    r"""
    Shape:
        - q: :math:`(B, Nt, E)`
        - k: :math:`(B, Ns, E)`
        - v: :math:`(B, Ns, F)`
        - attn_mask: a tensor to be added, of shape :math:`(Nt, Ns)`
    """
    B, Nt, E = q.shape
    q_scaled = q * math.sqrt(1.0 / float(E))
    if attn_mask is not None:
        attn_mask = attn_mask.expand(B, Nt, k.size(1))
        attn = torch.baddbmm(attn_mask, q_scaled, k.transpose(-2, -1))
    else:
        attn = torch.bmm(q_scaled, k.transpose(-2, -1))
    attn = torch.nn.functional.softmax(attn, dim=-1)
    if dropout_p > 0.0:
        attn = torch.nn.functional.dropout(attn, p=dropout_p)
    return torch.bmm(attn, v), attn


PATIENT = _scaled_dot_product_attention
FACTS = {
    "layout": "BND",
    "mask": "add",
    "mask_axes": "NN",
    "empty_row": "nan",
    "dropout": "dropout_p",
}
INPUTS = {"q": "b n d", "k": "b m d", "v": "b m e", "attn_mask?": "add n m"}
