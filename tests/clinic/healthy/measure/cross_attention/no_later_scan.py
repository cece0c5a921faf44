"""Of medical imaging: a visit reads another device's scans up to its day."""

import torch
from torch import nn


class ScanFusion(nn.Module):
    """Both series have a scan a visit; a scan may be missing at the end."""

    def __init__(self, dim, n_heads):
        super().__init__()
        self.n_heads = n_heads
        self.theta = nn.Conv1d(dim, dim, 1, bias=False)
        self.phi = nn.Conv1d(dim, dim, 1, bias=False)
        self.g = nn.Conv1d(dim, dim, 1)
        self.W = nn.Conv1d(dim, dim, 1)
        self.gamma = nn.Parameter(1e-2 * torch.ones(dim, 1))

    def forward(self, mri, pet, *, pet_valid=None):
        B, T, C = mri.shape
        h, c = self.n_heads, C // self.n_heads
        x, y = mri.mT, pet.mT
        theta = self.theta(x).reshape(B * h, c, -1)
        phi = self.phi(y).reshape(B * h, c, -1)
        g = self.g(y).reshape(B * h, c, -1)

        f = torch.bmm(theta.mT, phi) * c**-0.5  # B * h, T, scans
        seen = torch.ones_like(f, dtype=torch.bool).tril()
        if pet_valid is not None:
            valid = pet_valid[:, None].expand(B, h, -1).reshape(B * h, 1, -1)
            seen = seen & valid
        f = f.masked_fill(~seen, torch.finfo(f.dtype).min)
        f = nn.functional.softmax(f, dim=-1)

        out = torch.bmm(g, f.mT).reshape(B, C, T)
        return (self.gamma * self.W(out)).mT, f.view(B, h, T, -1)


PATIENT = ScanFusion(dim=8, n_heads=4)
FACTS = {
    "layout": "BND",
    "causal": True,
    "padding": "keep",
    "formula": "own",
    "d_model": 8,
    "n_heads": 4,
    "names": {"x": "mri", "context": "pet", "padding": "pet_valid"},
    "dtypes": ("float64", "float32", "bfloat16"),
}
INPUTS = {"mri": "b n 8", "pet": "b n 8", "pet_valid?": "real b n"}
