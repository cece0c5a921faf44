"""From an image generator: narrow queries, no scale, gamma times it added."""

import torch
import torch.nn as nn


class SelfAttn(nn.Module):
    """What is seen elsewhere is added to x, at first none of it.

    Parameters
    ----------
    in_dim : channels of x
    ratio : how many times fewer channels queries and keys have
    """

    def __init__(self, in_dim, ratio=4):
        super().__init__()
        self.query_conv = nn.Conv1d(in_dim, in_dim // ratio, kernel_size=1)
        self.key_conv = nn.Conv1d(in_dim, in_dim // ratio, kernel_size=1)
        self.value_conv = nn.Conv1d(in_dim, in_dim, kernel_size=1)
        self.gamma = nn.Parameter(torch.zeros(1))
        self.softmax = nn.Softmax(dim=-1)

    def forward(self, x):
        """x: B x N x C. Returns the sum, and the map B x N x N."""
        feats = x.permute(0, 2, 1)
        f = self.query_conv(feats).permute(0, 2, 1)  # B x N x C/ratio
        g = self.key_conv(feats)  # B x C/ratio x N
        h = self.value_conv(feats)  # B x C x N
        energy = torch.bmm(f, g)
        attention = self.softmax(energy)
        # columns of the transposed map are the queries
        o = torch.bmm(h, attention.permute(0, 2, 1)).permute(0, 2, 1)
        return self.gamma * o + x, attention


PATIENT = SelfAttn(12)
FACTS = {
    "layout": "BND",
    "causal": False,
    "formula": "own",
    "scale": 1.0,
    "n_heads": 1,
}
INPUTS = {"x": "b n 12"}
