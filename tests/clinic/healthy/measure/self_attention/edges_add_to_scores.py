"""Nodes of a graph: edges have features, and who has none sees nobody."""

import torch
from torch import nn


class GraphAttention(nn.Module):
    """Dense attention over the nodes of padded graphs.

    h: (B, N, hidden) node features
    e: (B, N, N, edge_dim) edge features, if there are any
    adj: (B, N, N) True where row i may look at column j
    """

    def __init__(self, hidden_dim, edge_dim, num_heads):
        super().__init__()
        self.num_heads = num_heads
        self.out_dim = hidden_dim // num_heads
        self.Q = nn.Linear(hidden_dim, hidden_dim, bias=True)
        self.K = nn.Linear(hidden_dim, hidden_dim, bias=True)
        self.V = nn.Linear(hidden_dim, hidden_dim, bias=True)
        self.proj_e = nn.Linear(edge_dim, num_heads)
        self.O_h = nn.Linear(hidden_dim, hidden_dim)

    def propagate(self, Q_h, K_h, V_h, bias, adj):
        # to (B, heads, N, out_dim)
        score = torch.einsum("bihd,bjhd->bijh", Q_h, K_h)
        score = score / self.out_dim**0.5
        if bias is not None:
            score = score + bias
        if adj is None:
            alpha = torch.softmax(score, dim=2)
        else:
            lonely = ~adj.any(dim=2)  # isolated nodes get a zero message
            score = score.masked_fill(~adj.unsqueeze(-1), float("-inf"))
            score = score.masked_fill(lonely[:, :, None, None], 0.0)
            alpha = torch.softmax(score, dim=2)
            alpha = alpha.masked_fill(lonely[:, :, None, None], 0.0)
        return torch.einsum("bijh,bjhd->bihd", alpha, V_h)

    def forward(self, h, e=None, adj=None):
        B, N, _ = h.size()
        Q_h = self.Q(h).view(B, N, self.num_heads, self.out_dim)
        K_h = self.K(h).view(B, N, self.num_heads, self.out_dim)
        V_h = self.V(h).view(B, N, self.num_heads, self.out_dim)
        bias = None if e is None else self.proj_e(e)
        h_attn = self.propagate(Q_h, K_h, V_h, bias, adj)
        return self.O_h(h_attn.reshape(B, N, -1))


PATIENT = GraphAttention(12, 3, num_heads=4)
FACTS = {
    "layout": "BND",
    "causal": False,
    "formula": "own",
    "mask": "keep",
    "mask_axes": "BNN",
    "empty_row": "zeros",
    "n_heads": 4,
}
INPUTS = {"h": "b n 12", "e?": "b n n 3", "adj?": "keep b n n"}
