"""Of a graph network: the adjacency first, and lonely nodes get nothing."""

import torch
import torch.nn as nn


class DenseGraphAttention(nn.Module):
    def __init__(self, in_dim, num_heads):
        super().__init__()
        assert in_dim % num_heads == 0
        self.num_heads = num_heads
        self.Q = nn.Linear(in_dim, in_dim)
        self.K = nn.Linear(in_dim, in_dim)
        self.V = nn.Linear(in_dim, in_dim)
        self.O = nn.Linear(in_dim, in_dim, bias=False)

    def propagate(self, q, k, v, edges):
        """Messages along edges, head by head."""
        score = torch.matmul(q, k.transpose(-1, -2)) * q.size(-1) ** -0.5
        nowhere = torch.finfo(score.dtype).min
        score = score.masked_fill(~edges, nowhere)
        alpha = torch.softmax(score, dim=-1) * edges
        return torch.matmul(alpha, v)

    def forward(self, adj, h):
        edges = adj.bool()
        heads = zip(
            self.Q(h).chunk(self.num_heads, dim=-1),
            self.K(h).chunk(self.num_heads, dim=-1),
            self.V(h).chunk(self.num_heads, dim=-1),
            strict=True,
        )
        messages = [self.propagate(q, k, v, edges) for q, k, v in heads]
        return self.O(torch.cat(messages, dim=-1))


PATIENT = DenseGraphAttention(12, 4)
FACTS = {
    "layout": "BND",
    "causal": False,
    "mask": "keep",
    "mask_axes": "BNN",
    "names": {"x": "h", "mask": "adj"},
    "projections": {"q": "Q", "k": "K", "v": "V", "out": "O"},
    "d_model": 12,
    "n_heads": 4,
    "empty_row": "zeros",
    "dtypes": ("float64", "float32", "bfloat16"),
}
INPUTS = {"adj": "keep b n n", "h": "b n 12"}
