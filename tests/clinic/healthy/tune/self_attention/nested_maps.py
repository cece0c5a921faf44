"""The projections live in a module of their own, by other names."""

import torch
from torch import nn


class Maps(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.ask = nn.Linear(size, size, bias=False)
        self.offer = nn.Linear(size, size, bias=False)
        self.tell = nn.Linear(size, size)


class Attend(nn.Module):
    def __init__(self, size, h):
        super().__init__()
        self.h = h
        self.maps = Maps(size)
        self.back = nn.Sequential(nn.Linear(size, size))

    def forward(self, x):
        b, n, size = x.shape
        shape = b, n, self.h, size // self.h
        q = self.maps.ask(x).reshape(shape).permute(0, 2, 1, 3)
        k = self.maps.offer(x).reshape(shape).permute(0, 2, 3, 1)
        v = self.maps.tell(x).reshape(shape).permute(0, 2, 1, 3)
        alpha = torch.softmax(q @ k / (size // self.h) ** 0.5, dim=3)
        heads = (alpha @ v).permute(0, 2, 1, 3)
        return self.back(heads.reshape(b, n, size))


PATIENT = Attend(12, 2)
FACTS = {
    "layout": "BND",
    "causal": False,
    "n_heads": 2,
    "projections": {
        "q": "maps.ask",
        "k": "maps.offer",
        "v": "maps.tell",
        "out": "back.0",
    },
}
INPUTS = {"x": "b n 12"}
