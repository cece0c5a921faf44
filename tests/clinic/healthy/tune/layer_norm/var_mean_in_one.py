"""BERT's eps, gamma and beta; mean and variance come from one call."""

import torch
from torch import nn


class BertLayerNorm(nn.Module):
    def __init__(self, hidden_size, variance_epsilon=1e-12):
        super().__init__()
        self.gamma = nn.Parameter(torch.ones(hidden_size))
        self.beta = nn.Parameter(torch.zeros(hidden_size))
        self.variance_epsilon = variance_epsilon

    def forward(self, x):
        v, u = torch.var_mean(x, dim=-1, correction=0, keepdim=True)
        x = (x - u) * torch.rsqrt(v + self.variance_epsilon)
        return torch.addcmul(self.beta, self.gamma, x)


PATIENT = BertLayerNorm(9)
FACTS = {"eps": 1e-12, "dtypes": ("float64", "float32")}
INPUTS = {"x": "b n 9"}
