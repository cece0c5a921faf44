"""Attention as messages on a graph: an edge from key to query if allowed."""

import torch


def edge_softmax(scores, target, n_nodes):
    """Softmax over the edges that end in the same node."""
    shape = (n_nodes, *scores.shape[1:])
    index = target.view(-1, *[1] * (scores.dim() - 1)).expand_as(scores)
    top = scores.new_full(shape, float("-inf"))
    top = top.scatter_reduce(0, index, scores.detach(), "amax")
    weights = torch.exp(scores - top[target])
    total = scores.new_zeros(shape).index_add(0, target, weights)
    return weights / total[target]


def message_passing(q, k, v, adjacency=None):
    """q is (B, N, H, D), k and v are (B, M, H, D), adjacency is (N, M)."""
    n, m = q.size(1), k.size(1)
    if adjacency is None:
        adjacency = torch.ones(n, m, dtype=torch.bool, device=q.device)
    target, source = adjacency.nonzero(as_tuple=True)
    # edges come first from here on
    q, k, v = q.transpose(0, 1), k.transpose(0, 1), v.transpose(0, 1)
    scores = (q[target] * k[source]).sum(-1) * q.size(-1) ** -0.5
    weights = edge_softmax(scores, target, n)
    messages = weights.unsqueeze(-1) * v[source]
    received = v.new_zeros(n, *v.shape[1:]).index_add(0, target, messages)
    return received.transpose(0, 1)


PATIENT = message_passing
FACTS = {
    "layout": "BNHD",
    "mask": "keep",
    "mask_axes": "NN",
    "empty_row": "zeros",
    "dtypes": ("float64", "float32"),
}
INPUTS = {
    "q": "b n h d",
    "k": "b m h d",
    "v": "b m h e",
    "adjacency?": "keep n m",
}
