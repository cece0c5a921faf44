"""Values, keys, queries: in this order, heads behind the words."""

import torch


def multi_head_core(values, keys, queries, mask=None):
    # queries: (N, query_len, heads, head_dim)
    # keys:    (N, key_len, heads, head_dim)
    head_dim = queries.shape[3]

    energy = torch.einsum("nqhd,nkhd->nhqk", [queries, keys])
    # energy:  (N, heads, query_len, key_len)
    if mask is not None:
        energy = energy.masked_fill(mask == 0, float("-1e20"))

    attention = torch.softmax(energy / (head_dim ** (1 / 2)), dim=3)
    # sum over all the keys, of which there are as many as values
    out = torch.einsum("nhql,nlhd->nqhd", [attention, values])
    return out


PATIENT = multi_head_core
FACTS = {
    "layout": "BNHD",
    "mask": "keep",
    "mask_axes": "B11N",
    "empty_row": "average",
    "dtypes": ("float64", "float32", "bfloat16"),
}
INPUTS = {
    "queries": "b n h d",
    "keys": "b m h d",
    "values": "b m h e",
    "mask?": "keep b 1 1 m",
}
