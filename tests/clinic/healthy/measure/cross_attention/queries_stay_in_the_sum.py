"""A block for sets: heads cut by split, and the queries added to it."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F


class SetAttentionBlock(nn.Module):
    def __init__(self, dim_Q, dim_K, dim_V, num_heads, ln=False):
        super().__init__()
        self.num_heads = num_heads
        self.fc_q = nn.Linear(dim_Q, dim_V)
        self.fc_k = nn.Linear(dim_K, dim_V)
        self.fc_v = nn.Linear(dim_K, dim_V)
        self.fc_o = nn.Linear(dim_V, dim_V)
        self.ln0 = nn.LayerNorm(dim_V) if ln else nn.Identity()
        self.ln1 = nn.LayerNorm(dim_V) if ln else nn.Identity()

    def fold(self, T):
        """The heads of all sets under each other."""
        return torch.cat(T.chunk(self.num_heads, dim=2), dim=0)

    def forward(self, X, Y):
        Q = self.fold(self.fc_q(X))
        K, V = self.fold(self.fc_k(Y)), self.fold(self.fc_v(Y))
        A = torch.bmm(Q, K.transpose(1, 2)) / math.sqrt(Q.size(-1))
        A = torch.softmax(A, dim=2)
        H = Q + torch.bmm(A, V)
        H = torch.cat(H.split(X.size(0), dim=0), dim=2)
        H = self.ln0(H)
        H = H + F.relu(self.fc_o(H))
        return self.ln1(H)


PATIENT = SetAttentionBlock(7, 5, 12, num_heads=3, ln=True)
FACTS = {
    "layout": "BND",
    "causal": False,
    "formula": "own",
    "n_heads": 3,
}
INPUTS = {"X": "b n 7", "Y": "b m 5"}
