"""From a lecture: each head is a module, and their words are joined."""

import torch
import torch.nn as nn
from torch.nn import functional as F

# what the whole notebook goes by
n_embd, n_head, block_size = 12, 3, 16
p_drop = 0.2


class Head(nn.Module):
    def __init__(self, head_size):
        super().__init__()
        self.q = nn.Linear(n_embd, head_size, bias=False)
        self.k = nn.Linear(n_embd, head_size, bias=False)
        self.v = nn.Linear(n_embd, head_size, bias=False)
        seen = torch.ones(block_size, block_size).tril()
        self.register_buffer("seen", seen)
        self.drop = nn.Dropout(p_drop)

    def forward(self, x):
        T = x.size(1)
        aff = torch.einsum("bid,bjd->bij", self.q(x), self.k(x))  # B, T, T
        aff = aff / self.q.out_features**0.5
        aff = aff.masked_fill(self.seen[:T, :T] == 0, float("-inf"))
        aff = self.drop(F.softmax(aff, dim=-1))
        return torch.bmm(aff, self.v(x))


class ManyHeads(nn.Module):
    def __init__(self):
        super().__init__()
        size = n_embd // n_head
        self.heads = nn.ModuleList([Head(size) for _ in range(n_head)])
        self.mix = nn.Linear(n_embd, n_embd)
        self.drop = nn.Dropout(p_drop)

    def forward(self, x):
        said = [head(x) for head in self.heads]
        return self.drop(self.mix(torch.cat(said, dim=2)))


def feed_forward():
    wide = 4 * n_embd
    return nn.Sequential(
        nn.Linear(n_embd, wide),
        nn.ReLU(),
        nn.Linear(wide, n_embd),
        nn.Dropout(p_drop),
    )


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.sa = ManyHeads()
        self.ffwd = feed_forward()
        self.ln1, self.ln2 = nn.LayerNorm(n_embd), nn.LayerNorm(n_embd)

    def forward(self, x):
        x = x + self.sa(self.ln1(x))
        x = x + self.ffwd(self.ln2(x))
        return x


PATIENT = Block()
FACTS = {
    "order": "pre",
    "layout": "BND",
    "causal": True,
    "attention": "sa",
    "feed_forward": "ffwd",
    "norms": ["ln1", "ln2"],
    "n_heads": 3,
    "longest": 16,
    "dropout": 0.2,
}
INPUTS = {"x": "b n 12"}
SIZES = {"n": (1, 16)}
