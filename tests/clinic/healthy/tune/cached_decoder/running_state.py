"""Linear attention: the past is a matrix and a vector for every head."""

import torch
import torch.nn.functional as F
from torch import nn


class RecurrentAttention(nn.Module):
    def __init__(self, d_model, n_heads, eps=1e-6):
        super().__init__()
        self.n_heads, self.eps = n_heads, eps
        self.query_projection = nn.Linear(d_model, d_model)
        self.key_projection = nn.Linear(d_model, d_model)
        self.value_projection = nn.Linear(d_model, d_model)
        self.out_projection = nn.Linear(d_model, d_model)

    def step(self, query, key, value, state):
        Si, Zi = state
        Zi = Zi + key
        Si = Si + torch.einsum("nhd,nhm->nhdm", key, value)
        Z = 1 / (torch.einsum("nhd,nhd->nh", query, Zi) + self.eps)
        V = torch.einsum("nhd,nhdm,nh->nhm", query, Si, Z)
        return V, (Si, Zi)

    def forward(self, x, state=None):
        N, L, D = x.shape
        H = self.n_heads
        Q = F.elu(self.query_projection(x).view(N, L, H, -1)) + 1
        K = F.elu(self.key_projection(x).view(N, L, H, -1)) + 1
        V = self.value_projection(x).view(N, L, H, -1)
        if state is None:
            E = D // H
            state = (x.new_zeros(N, H, E, E), x.new_zeros(N, H, E))
        outputs = []
        for i in range(L):
            out, state = self.step(Q[:, i], K[:, i], V[:, i], state)
            outputs.append(out.flatten(1))
        return self.out_projection(torch.stack(outputs, dim=1)), state


PATIENT = RecurrentAttention(8, 2)
FACTS = {
    "d_model": 8,
    "formula": "own",
    "call": lambda layer, x, cache: layer(x, cache),
    "dtypes": ("float64", "float32"),
}
INPUTS = {"x": "b n 8"}
LOUDEST = 4
