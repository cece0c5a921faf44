"""For agents in a game: key after key, and weights only if one watches."""

import contextlib
import math

import torch
from torch import nn


class EntityAttention(nn.Module):
    """Reads entities one at a time, as they come in."""

    def __init__(self, temperature=1.0, watch=False, eps=0.0):
        super().__init__()
        self.temperature = temperature
        self.watch = watch
        self.eps = eps
        self.last_weights = None

    @contextlib.contextmanager
    def watching(self):
        """Within it, weights are kept to be drawn over the screen."""
        self.watch, before = True, self.watch
        try:
            yield self
        finally:
            self.watch = before

    def logits(self, agents, entity, bias, j):
        seen = (agents * entity[:, :, j, None]).sum(-1)
        seen = seen / (self.temperature * math.sqrt(agents.shape[-1]))
        return seen if bias is None else seen + bias[..., j]

    def forward(self, agents, entity, payload, bias=None, causal=False):
        n_agents, n_entities = agents.shape[2], entity.shape[2]
        turn = torch.arange(n_agents, device=agents.device)
        turn = turn + n_entities - n_agents
        top = agents.new_full(agents.shape[:3], -math.inf)
        total = agents.new_zeros(agents.shape[:3])
        read = agents.new_zeros(*agents.shape[:3], payload.shape[-1])
        seen = []
        for j in range(n_entities):
            now = self.logits(agents, entity, bias, j)
            if causal:
                now = now.masked_fill(turn < j, -math.inf)
            higher = torch.maximum(top, now.detach())
            level = higher.masked_fill(higher == -math.inf, 0.0)
            fade, new = (top - level).exp(), (now - level).exp()
            total = total * fade + new
            read = (
                read * fade[..., None]
                + new[..., None] * payload[:, :, j, None]
            )
            top = higher
            seen.append(now.detach())
        total = total + self.eps
        total = total.masked_fill(total == 0, 1.0)
        if self.watch:
            level = top.masked_fill(top == -math.inf, 0.0)
            shares = torch.stack(seen, -1) - level[..., None]
            self.last_weights = shares.exp() / total.detach()[..., None]
        return read / total[..., None]


PATIENT = EntityAttention()
FACTS = {
    "layout": "BHND",
    "causal": False,
    "alignment": "last",
    "mask": "add",
    "mask_axes": "all",
    "empty_row": "zeros",
    "names": {
        "q": "agents",
        "k": "entity",
        "v": "payload",
        "mask": "bias",
        "causal": "causal",
    },
    "dtypes": ("float64", "float32"),
}
INPUTS = {
    "agents": "b h n d",
    "entity": "b h n+2 d",
    "payload": "b h n+2 e",
    "bias?": "add b h n n+2",
    "causal?": "true",
}
OTHER_INPUTS = [
    {
        "agents": "b h n d",
        "entity": "b h m d",
        "payload": "b h m e",
        "bias": "add b h n m",
    }
]
