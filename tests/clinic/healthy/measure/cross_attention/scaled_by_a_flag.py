"""For long DNA: a flag between the inputs, and a learnt scale behind all."""

import torch
from torch import nn


class LocusToReference(nn.Module):
    """Loci read a reference track; a band of numbers is added to scores."""

    def __init__(self, dim, heads, dim_reference=None, init_scale=0.1):
        super().__init__()
        self.heads = heads
        self.dim_head = dim // heads
        wide = {"q": dim, "k": dim_reference or dim, "v": dim_reference or dim}
        for name, width in wide.items():
            matrix = torch.randn(heads, width, self.dim_head) * width**-0.5
            self.register_parameter(f"{name}_matrix", nn.Parameter(matrix))
            shift = torch.zeros(heads, 1, self.dim_head)
            self.register_parameter(f"{name}_shift", nn.Parameter(shift))
        self.join = nn.Linear(dim, dim)
        self.scale = nn.Parameter(torch.full((dim,), init_scale))

    def mapped(self, x, name):
        matrix = getattr(self, f"{name}_matrix")
        return x.unsqueeze(1) @ matrix + getattr(self, f"{name}_shift")

    def forward(self, loci, scaled, reference, band=None):
        q = self.mapped(loci, "q")
        k = self.mapped(reference, "k")
        v = self.mapped(reference, "v")
        scores = q @ k.mT / self.dim_head**0.5
        if band is not None:
            scores = scores + band
        scores = scores - scores.amax(dim=-1, keepdim=True).detach()
        powers = scores.exp()
        mixed = powers @ v / powers.sum(dim=-1, keepdim=True)
        out = self.join(torch.cat(mixed.unbind(dim=1), dim=-1))
        return out * self.scale if scaled else out


PATIENT = LocusToReference(dim=8, heads=2, dim_reference=6)
FACTS = {
    "layout": "BND",
    "causal": False,
    "mask": "add",
    "mask_axes": "NN",
    "empty_row": "nan",
    "formula": "own",
    "d_model": 8,
    "n_heads": 2,
    "names": {"x": "loci", "context": "reference", "mask": "band"},
    "call": {"scaled": True},
    "dtypes": ("float64", "float32", "bfloat16"),
}
INPUTS = {
    "loci": "b n 8",
    "scaled": "true",
    "reference": "b m 6",
    "band?": "add n m",
}
