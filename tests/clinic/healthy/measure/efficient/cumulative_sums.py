"""Linear and causal by running sums of keys and of what they bring."""

import torch
import torch.nn.functional as F
from torch import nn


def elu_feature_map(x):
    return F.elu(x) + 1


class CausalLinearAttention(nn.Module):
    """Quick, but for each token there is a table of its own."""

    def __init__(self, feature_map=elu_feature_map):
        super().__init__()
        self.phi = feature_map

    def forward(self, q, k, v):
        q, k = self.phi(q), self.phi(k)
        # B H N D E: what all tokens up to this one have written
        kv = torch.einsum("bhnd,bhne->bhnde", k, v).cumsum(dim=2)
        k_sum = k.cumsum(dim=2)

        numerator = torch.einsum("bhnd,bhnde->bhne", q, kv)
        norm = torch.einsum("bhnd,bhnd->bhn", q, k_sum)
        return numerator / norm.unsqueeze(-1)


PATIENT = CausalLinearAttention()
FACTS = {
    "layout": "BHND",
    "kernel": elu_feature_map,
    "causal": True,
    "square": True,
}
INPUTS = {"q": "b h n d", "k": "b h n d", "v": "b h n e"}
SIZES = {"n": (1, 12)}
LOUDEST = 4
