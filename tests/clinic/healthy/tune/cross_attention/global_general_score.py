"""From the days of LSTMs: the general score, and tanh of both side by side."""

import torch
import torch.nn as nn


def sequence_mask(lengths, max_len=None):
    """Lengths of a batch as a mask of ones where there are words."""
    max_len = max_len or int(lengths.max())
    steps = torch.arange(0, max_len, device=lengths.device)
    return steps.unsqueeze(0).lt(lengths.unsqueeze(1))


class GlobalAttention(nn.Module):
    def __init__(self, dim, attn_func="softmax"):
        super(GlobalAttention, self).__init__()  # noqa: UP008
        self.dim = dim
        self.attn_func = attn_func
        self.linear_in = nn.Linear(dim, dim, bias=False)
        self.linear_out = nn.Linear(dim * 2, dim, bias=False)

    def score(self, h_t, h_s):
        """h_t: (tgt_len, batch, dim), h_s: (src_len, batch, dim)."""
        return torch.einsum("tbd,sbd->bts", self.linear_in(h_t), h_s)

    def forward(self, source, memory_bank, memory_lengths=None):
        src_len, batch, dim = memory_bank.size()
        assert source.size(1) == batch and source.size(2) == dim == self.dim

        align = self.score(source, memory_bank)
        if memory_lengths is not None:
            mask = sequence_mask(memory_lengths, max_len=src_len)
            align.masked_fill_(~mask.unsqueeze(1), -float("inf"))
        align_vectors = getattr(torch, self.attn_func)(align, -1)

        c = torch.bmm(align_vectors, memory_bank.transpose(0, 1))
        concat_c = torch.cat([c.transpose(0, 1), source], 2)
        attn_h = torch.tanh(self.linear_out(concat_c))
        return attn_h, align_vectors.transpose(0, 1)


PATIENT = GlobalAttention(9)
FACTS = {
    "layout": "NBD",
    "formula": "own",
    "mask": "lengths",
    "names": {
        "x": "source",
        "context": "memory_bank",
        "mask": "memory_lengths",
    },
    "d_model": 9,
    "n_heads": 1,
    "scale": 1.0,
    "dtypes": ("float64", "float32", "bfloat16"),
}
INPUTS = {
    "source": "n b 9",
    "memory_bank": "m b 9",
    "memory_lengths?": "lengths b m",
}
