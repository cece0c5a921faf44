"""Slots compete for what there is: shares of each input, then averages."""

import torch
from torch import nn


class SlotAttention(nn.Module):
    def __init__(self, slot_dim, input_dim, eps=1e-8):
        super().__init__()
        self.eps = eps
        self.norm_slots = nn.LayerNorm(slot_dim)
        self.norm_input = nn.LayerNorm(input_dim)
        self.to_q = nn.Linear(slot_dim, slot_dim, bias=False)
        self.to_k = nn.Linear(input_dim, slot_dim, bias=False)
        self.to_v = nn.Linear(input_dim, slot_dim, bias=False)

    def forward(self, slots, inputs):
        q = self.to_q(self.norm_slots(slots))
        inputs = self.norm_input(inputs)
        k, v = self.to_k(inputs), self.to_v(inputs)
        dots = torch.einsum("bid,bjd->bij", q, k) * q.shape[-1] ** -0.5
        shares = dots.softmax(dim=1) + self.eps  # over slots: they compete
        shares = shares / shares.sum(dim=-1, keepdim=True)
        return torch.einsum("bjd,bij->bid", v, shares)


PATIENT = SlotAttention(8, 6)
FACTS = {
    "layout": "BND",
    "causal": False,
    "formula": "own",
    "n_heads": 1,
    "dtypes": ("float64", "float32"),
}
INPUTS = {"slots": "b n 8", "inputs": "b m 6"}
