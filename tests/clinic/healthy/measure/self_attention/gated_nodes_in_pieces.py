"""Of graphs: what a node hears passes a gate; receivers come in pieces."""

import torch
from torch import nn
from torch.nn.functional import softmax


class GatedNodes(nn.Module):
    def __init__(self, hidden, heads, piece=2):
        super().__init__()
        self.heads, self.piece = heads, piece
        self.lin_src = nn.Linear(hidden, 2 * hidden)  # keys, then values
        self.lin_dst = nn.Linear(hidden, hidden)
        self.lin_gate = nn.Linear(hidden, hidden)
        self.lin_out = nn.Linear(hidden, hidden)

    def message(self, dst, key, value, exists):
        """What the nodes in dst hear from all nodes of their graph."""
        alpha = torch.einsum("gihc,gjhc->gijh", dst, key)
        alpha = alpha / dst.size(-1) ** 0.5
        if exists is not None:
            low = torch.finfo(alpha.dtype).min
            alpha = alpha.masked_fill(~exists[:, None, :, None], low)
        return torch.einsum("gijh,gjhc->gihc", softmax(alpha, dim=2), value)

    def forward(self, nodes, node_mask=None):
        g, n, hidden = nodes.size()
        shape = g, n, self.heads, hidden // self.heads
        key, value = self.lin_src(nodes).chunk(2, dim=-1)
        key, value = key.reshape(shape), value.reshape(shape)
        dst = self.lin_dst(nodes).reshape(shape)
        heard = [
            self.message(part, key, value, node_mask)
            for part in dst.split(self.piece, dim=1)
        ]
        heard = torch.cat(heard, dim=1).reshape(g, n, hidden)
        return self.lin_out(torch.sigmoid(self.lin_gate(nodes)) * heard)


PATIENT = GatedNodes(hidden=10, heads=2)
FACTS = {
    "layout": "BND",
    "causal": False,
    "padding": "keep",
    "formula": "own",
    "d_model": 10,
    "n_heads": 2,
    "names": {"x": "nodes", "padding": "node_mask"},
    "dtypes": ("float64", "float32", "bfloat16"),
}
INPUTS = {"nodes": "b n 10", "node_mask?": "real b n"}
