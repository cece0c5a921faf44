"""Keys and values lie in pages of four tokens; a table says in which."""

import torch
from torch import nn

PAGE = 4


class Pages:
    """A pool of pages, and for each text those that are its own."""

    def __init__(self, texts):
        self.pool = []
        self.table = [[] for _ in range(texts)]
        self.length = 0

    def fork(self):
        """Another cache that shares the full pages."""
        other = Pages(len(self.table))
        other.pool = list(self.pool)
        other.table = [list(row) for row in self.table]
        other.length = self.length
        return other

    def append(self, kv):
        """One more token for each text: (b, 2, h, d)."""
        slot = self.length % PAGE
        for row, new in zip(self.table, kv, strict=True):
            if slot == 0:
                row.append(len(self.pool))
                self.pool.append(new.new_zeros(PAGE, *new.shape))
            head = self.pool[row[-1]][:slot]
            rest = new.new_zeros(PAGE - slot - 1, *new.shape)
            self.pool[row[-1]] = torch.cat((head, new[None], rest))
        self.length += 1

    def gather(self):
        """All that counts: (b, n, 2, h, d)."""
        rows = [
            torch.cat([self.pool[page] for page in row]) for row in self.table
        ]
        return torch.stack(rows)[:, : self.length]


class PagedAttention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.q = nn.Linear(dim, dim)
        self.kv = nn.Linear(dim, 2 * dim)
        self.o = nn.Linear(dim, dim)

    def forward(self, x, pages=None):
        pages = Pages(len(x)) if pages is None else pages.fork()
        q = self.q(x).unflatten(-1, (self.heads, -1))
        kv = self.kv(x).unflatten(-1, (2, self.heads, -1))
        out = []
        for t in range(x.shape[1]):  # one token after the other
            pages.append(kv[:, t])
            k, v = pages.gather().unbind(2)
            s = torch.einsum("bhd,bmhd->bhm", q[:, t], k)
            w = torch.softmax(s / q.shape[-1] ** 0.5, dim=-1)
            out.append(torch.einsum("bhm,bmhd->bhd", w, v).flatten(1))
        return self.o(torch.stack(out, dim=1)), pages


PATIENT = PagedAttention(9, 3)
FACTS = {"d_model": 9, "call": lambda layer, x, cache: layer(x, cache)}
INPUTS = {"x": "b n 9"}
SIZES = {"n": (1, 10)}
