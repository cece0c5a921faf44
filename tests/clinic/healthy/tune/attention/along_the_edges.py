"""A graph person's: only edges have scores, nodes gather what arrives."""

import torch


def scatter_max(src, index, dim_size):
    out = src.new_full((dim_size,), -torch.inf)
    return out.scatter_reduce(0, index, src, reduce="amax")


def scatter_sum(src, index, dim_size):
    out = src.new_zeros((dim_size, *src.shape[1:]))
    return out.index_add(0, index, src)


def edge_softmax(score, receiver, num_nodes):
    top = scatter_max(score.detach(), receiver, num_nodes)
    score = torch.exp(score - top[receiver])
    return score / scatter_sum(score, receiver, num_nodes)[receiver]


def propagate(z_dst, z_src, msg, adj=None, return_alpha=False):
    """Attention from senders to receivers.

    z_dst: [num_dst, c], z_src: [num_src, c], msg: [num_src, c_out]
    adj:   [num_dst, num_src], true where an edge arrives; all, if None

    A node without edges gets no message, thus zeros.
    """
    num_dst, num_src = z_dst.size(0), z_src.size(0)
    if adj is None:
        adj = torch.ones(
            num_dst, num_src, dtype=torch.bool, device=z_dst.device
        )
    dst, src = adj.nonzero(as_tuple=True)

    channels = z_dst.size(-1)
    e = torch.einsum("ec,ec->e", z_dst[dst], z_src[src]) / channels**0.5
    alpha = edge_softmax(e, dst, num_dst)
    out = scatter_sum(alpha[:, None] * msg[src], dst, num_dst)

    if return_alpha:
        return out, (torch.stack([src, dst]), alpha)
    return out


PATIENT = propagate
FACTS = {
    "layout": "N D",
    "mask": "keep",
    "mask_axes": "NN",
    "empty_row": "zeros",
    "names": {"q": "z_dst", "k": "z_src", "v": "msg", "mask": "adj"},
    "dtypes": ("float64", "float32"),
}
INPUTS = {
    "z_dst": "n d",
    "z_src": "m d",
    "msg": "m e",
    "adj?": "keep n m",
}
