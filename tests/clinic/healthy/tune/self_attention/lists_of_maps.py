"""Three lists of linear maps, one map a head; a loop over the heads."""

import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, width=12, heads=4):
        super().__init__()
        part = width // heads
        self.q = nn.ModuleList(nn.Linear(width, part) for _ in range(heads))
        self.k = nn.ModuleList(nn.Linear(width, part) for _ in range(heads))
        self.v = nn.ModuleList(nn.Linear(width, part) for _ in range(heads))
        self.mix = nn.Linear(width, width)

    def forward(self, tokens, key_padding_mask=None):
        results = []
        for to_q, to_k, to_v in zip(self.q, self.k, self.v, strict=True):
            q, k, v = to_q(tokens), to_k(tokens), to_v(tokens)
            scores = q @ k.mT / q.shape[-1] ** 0.5
            if key_padding_mask is not None:
                hidden = key_padding_mask[:, None, :]
                scores = scores.masked_fill(hidden, -torch.inf)
            results.append(scores.softmax(dim=-1) @ v)
        return self.mix(torch.cat(results, dim=-1))


PATIENT = Attention()
FACTS = {
    "layout": "BND",
    "causal": False,
    "padding": "block",
    "empty_row": "nan",
    "n_heads": 4,
}
INPUTS = {"tokens": "b n 12", "key_padding_mask?": "padding b n"}
