"""A linear transformer's recurrence: blocks, and a state carried between."""

from dataclasses import dataclass, replace

import torch
import torch.nn as nn


def feature_map(x):
    """1 + relu(x): positive, so that no sum of shares is ever zero."""
    return x.relu() + 1


@dataclass
class State:
    kv: torch.Tensor  # (batch, heads, features of keys, of values)
    k: torch.Tensor  # (batch, heads, features of keys)

    @classmethod
    def empty(cls, k, v):
        shape = k.shape[:2]
        return cls(
            kv=v.new_zeros(*shape, k.shape[-1], v.shape[-1]),
            k=k.new_zeros(*shape, k.shape[-1]),
        )

    def after(self, k, v):
        return replace(
            self, kv=self.kv + k.transpose(-1, -2) @ v, k=self.k + k.sum(-2)
        )


class CausalLinearAttention(nn.Module):
    def __init__(self, block=4, feature_map=feature_map):
        super().__init__()
        self.block = block
        self.feature_map = feature_map

    def within(self, q, k, v, state):
        """A block's own lower triangle, and the past through the state."""
        own = torch.tril(q @ k.transpose(-1, -2))
        share = own.sum(-1) + torch.einsum("bhnd,bhd->bhn", q, state.k)
        return (own @ v + q @ state.kv) / share.unsqueeze(-1)

    def forward(self, queries, keys, values):
        """(batch, heads, tokens, features); as many queries as keys."""
        if queries.shape[2] != keys.shape[2]:
            raise ValueError("queries and keys have to be of the same tokens")
        q, k = self.feature_map(queries), self.feature_map(keys)
        state, out = State.empty(k, values), []
        blocks = (t.split(self.block, dim=2) for t in (q, k, values))
        for q_now, k_now, v_now in zip(*blocks, strict=True):
            out.append(self.within(q_now, k_now, v_now, state))
            state = state.after(k_now, v_now)
        return torch.cat(out, dim=2)


PATIENT = CausalLinearAttention()
FACTS = {
    "layout": "BHND",
    "formula": "claimed",
    "kernel": feature_map,
    "causal": True,
    "square": True,
    "names": {"q": "queries", "k": "keys", "v": "values"},
    "dtypes": ("float64", "float32"),
}
INPUTS = {
    "queries": "b h n d",
    "keys": "b h n d",
    "values": "b h n e",
}
