"""For agents that learn by reward: gates of a GRU where others add."""

import torch
from torch import nn


class GRUGate(nn.Module):
    """At first it lets nearly all of the old pass."""

    def __init__(self, dim, openness=2.0):
        super().__init__()
        self.from_new = nn.Linear(dim, 3 * dim, bias=False)
        self.from_old = nn.Linear(dim, 2 * dim, bias=False)
        self.from_reset = nn.Linear(dim, dim, bias=False)
        self.threshold = nn.Parameter(torch.full((dim,), openness))

    def forward(self, old, new):
        r_new, z_new, h_new = self.from_new(new).chunk(3, dim=-1)
        r_old, z_old = self.from_old(old).chunk(2, dim=-1)
        reset = torch.sigmoid(r_new + r_old)
        update = torch.sigmoid(z_new + z_old - self.threshold)
        candidate = torch.tanh(h_new + self.from_reset(reset * old))
        return torch.lerp(old, candidate, update)


class StableBlock(nn.Module):
    def __init__(self, dim, heads, hidden):
        super().__init__()
        self.norm_attention = nn.LayerNorm(dim)
        self.attention = nn.MultiheadAttention(dim, heads)
        self.gate_attention = GRUGate(dim)
        self.norm_mlp = nn.LayerNorm(dim)
        self.mlp = nn.Sequential(
            nn.Linear(dim, hidden), nn.ReLU(), nn.Linear(hidden, dim)
        )
        self.gate_mlp = GRUGate(dim)

    def forward(self, obs):
        steps = obs.shape[0]
        ahead = torch.ones(steps, steps, device=obs.device).triu(1).bool()
        h = self.norm_attention(obs)
        h = self.attention(h, h, h, attn_mask=ahead, need_weights=False)[0]
        obs = self.gate_attention(obs, torch.relu(h))
        h = self.mlp(self.norm_mlp(obs))
        return self.gate_mlp(obs, torch.relu(h))


PATIENT = StableBlock(8, 2, 14)
FACTS = {
    "formula": "own",
    "path": "free",
    "layout": "NBD",
    "causal": True,
    "attention": "attention",
    "feed_forward": "mlp",
    "norms": ["norm_attention", "norm_mlp"],
    "n_heads": 2,
}
INPUTS = {"obs": "n b 8"}
