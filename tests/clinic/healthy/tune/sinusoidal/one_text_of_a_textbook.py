"""For a course: the table has an axis for texts, of which there is one."""

import torch
from torch import nn


class PositionalEncoding(nn.Module):
    """P is (1, max_len, num_hiddens), and is added to what comes."""

    def __init__(self, num_hiddens, dropout=0.0, max_len=1000):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        P = torch.zeros((1, max_len, num_hiddens))
        even = torch.arange(0, num_hiddens, 2, dtype=torch.float32)
        steps = torch.arange(max_len, dtype=torch.float32).reshape(-1, 1)
        angles = steps / torch.pow(10000, even / num_hiddens)
        P[:, :, 0::2] = torch.sin(angles)
        P[:, :, 1::2] = torch.cos(angles)
        self.P = P

    def forward(self, X):
        X = X + self.P[:, : X.shape[1], :].to(X.device)
        return self.dropout(X)


def table(num_steps, encoding_dim):
    """What is added to zeros, to draw a picture of it."""
    pos_encoding = PositionalEncoding(encoding_dim)
    return pos_encoding(torch.zeros((1, num_steps, encoding_dim)))[0]


PATIENT = table
FACTS = {"layout": "pairs", "longest": 1000, "dtypes": ("float32",)}
INPUTS = {"num_steps": "int n", "encoding_dim": "int 2*d"}
SIZES = {"n": (1, 300), "d": (2, 24)}
