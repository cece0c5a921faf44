"""Tables are kept by type and place in a dictionary that all share."""

from typing import ClassVar

import torch


class RotaryHelper:
    _tables: ClassVar[dict] = {}

    def __init__(self, head_dim, max_positions=64):
        self.head_dim = head_dim
        self.max_positions = max_positions

    def tables(self, like):
        key = (self.head_dim, self.max_positions, like.dtype, like.device)
        if key not in self._tables:
            exponent = torch.arange(self.head_dim // 2).double()
            exponent = exponent.div(-(self.head_dim // 2))
            frequency = torch.full_like(exponent, 10_000).pow(exponent)
            place = torch.arange(self.max_positions).double()
            angle = torch.kron(place[:, None], frequency[None, :])
            self._tables[key] = (angle.cos().to(like), angle.sin().to(like))
        return self._tables[key]

    def __call__(self, states, past=0):
        """states is (batch, tokens, heads, head_dim)."""
        cos, sin = (
            t[past : past + states.size(1), None, :]
            for t in self.tables(states)
        )
        left, right = states.tensor_split(2, dim=-1)
        turned_left = torch.addcmul(left * cos, right, sin, value=-1)
        turned_right = torch.addcmul(right * cos, left, sin)
        return torch.cat((turned_left, turned_right), dim=3)


PATIENT = RotaryHelper(10)
FACTS = {"pairs": "halves", "layout": "BNHD", "width": 10, "longest": 64}
INPUTS = {"states": "b n h 10", "past": "int s"}
SIZES = {"s": (0, 9)}
