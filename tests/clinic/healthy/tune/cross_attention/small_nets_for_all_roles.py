"""A biologist's: residues read ligands through small networks by role."""

import torch
from torch import nn


def pointwise(width_in, width_out, hidden=None):
    """One or two convolutions that do not look at neighbours."""
    if hidden is None:
        return nn.Conv1d(width_in, width_out, 1)
    return nn.Sequential(
        nn.Conv1d(width_in, hidden, 1), nn.GELU(), pointwise(hidden, width_out)
    )


class ResidueLigand(nn.Module):
    def __init__(self, residue, ligand, heads, hidden=14):
        super().__init__()
        self.heads = heads
        self.roles = nn.ModuleDict()
        self.roles["query"] = pointwise(residue, residue)
        self.roles["key"] = pointwise(ligand, residue, hidden)
        self.roles["value"] = pointwise(ligand, residue, hidden)
        self.roles["output"] = pointwise(residue, residue)

    def role(self, name, x):
        y = self.roles[name](x.transpose(1, 2))  # batch, channel, length
        return y.reshape(len(y), self.heads, -1, y.size(-1))

    def forward(self, query, key, value, contact=None):
        q = self.role("query", query)
        k = self.role("key", key)
        v = self.role("value", value)
        energy = torch.einsum("bhci,bhcj->bhij", q, k) / q.size(2) ** 0.5
        if contact is not None:
            energy = energy.masked_fill(contact == 0, float("-inf"))
        binding = energy.softmax(dim=3)
        heard = torch.einsum("bhij,bhcj->bhci", binding, v)
        out = self.roles["output"](heard.flatten(1, 2))
        return out.transpose(1, 2)


PATIENT = ResidueLigand(residue=12, ligand=9, heads=3)
FACTS = {
    "layout": "BND",
    "causal": False,
    "mask": "keep",
    "mask_axes": "B1NN",
    "empty_row": "nan",
    "formula": "own",
    "d_model": 12,
    "n_heads": 3,
    "names": {"x": "query", "context": "key", "mask": "contact"},
    "dtypes": ("float64", "float32", "bfloat16"),
}
INPUTS = {
    "query": "b n 12",
    "key": "b m 9",
    "value": "=key",
    "contact?": "keep b 1 n m",
}
