"""Self-attention, a look at the memory and a network, all side by side."""

import torch
import torch.nn.functional as F
from torch import nn


class FusedDecoderBlock(nn.Module):
    def __init__(self, d_model, d_memory, n_heads, d_head, d_ff):
        super().__init__()
        inner = n_heads * d_head
        self.n_heads = n_heads
        self.sections = [inner, inner, inner, inner, d_ff, d_ff]
        self.norm = nn.LayerNorm(d_model, bias=False)
        self.wide = nn.Linear(d_model, sum(self.sections), bias=False)
        self.memory_kv = nn.Linear(d_memory, 2 * inner, bias=False)
        self.out = nn.Linear(2 * inner + d_ff, d_model, bias=False)

    def attend(self, q, k, v, mask=None):
        heads = [t.chunk(self.n_heads, dim=-1) for t in (q, k, v)]
        outs = []
        for q_h, k_h, v_h in zip(*heads, strict=True):
            s = torch.bmm(q_h, k_h.transpose(1, 2)) * q_h.size(-1) ** -0.5
            if mask is not None:
                s = s.masked_fill(mask, float("-inf"))
            outs.append(torch.bmm(s.softmax(dim=-1), v_h))
        return torch.cat(outs, dim=-1)

    def forward(self, x, memory, memory_padding=None):
        n = x.size(1)
        future = torch.ones(n, n, dtype=torch.bool, device=x.device).triu(1)
        if memory_padding is not None:
            memory_padding = memory_padding.unsqueeze(1)

        wide = self.wide(self.norm(x)).split(self.sections, dim=-1)
        q, k, v, q_memory, gate, up = wide
        k_memory, v_memory = self.memory_kv(memory).chunk(2, dim=-1)
        own = self.attend(q, k, v, future)
        other = self.attend(q_memory, k_memory, v_memory, memory_padding)
        ff = F.silu(gate) * up
        return x + self.out(torch.cat([own, other, ff], dim=-1))


PATIENT = FusedDecoderBlock(10, 7, n_heads=2, d_head=4, d_ff=14)
FACTS = {
    "order": "parallel",
    "formula": "own",
    "layout": "BND",
    "padding": "block",
    "empty_row": "nan",
    "norms": ["norm"],
    "n_heads": 2,
}
INPUTS = {"x": "b n 10", "memory": "b m 7", "memory_padding?": "padding b m"}
