"""A chemist's, for atoms along a chain: Givens rotations, told positions."""

import torch


def make_rotation(base=10_000.0):
    """Made once; the rates are those of the width that comes in."""

    def givens(width, chain_index, device):
        plane = torch.arange(width // 2, device=device, dtype=torch.float64)
        rate = base ** (-2.0 * plane / width)
        angle = chain_index.to(torch.float64)[:, None] * rate
        c, s = torch.cos(angle), torch.sin(angle)
        rows = (torch.stack((c, -s), -1), torch.stack((s, c), -1))
        return torch.stack(rows, -2)  # atoms, planes, 2, 2

    def rotate(atoms, chain_index):
        """atoms: (molecules, atoms, heads, features)."""
        width = atoms.shape[-1]
        if width % 2:
            raise ValueError("features lie in planes of two")
        turn = givens(width, chain_index, atoms.device).to(atoms.dtype)
        planes = atoms.unflatten(-1, (width // 2, 2))
        return torch.einsum("apij,mahpj->mahpi", turn, planes).flatten(-2)

    return rotate


PATIENT = make_rotation()
FACTS = {
    "pairs": "neighbours",
    "layout": "BNHD",
    "told": "positions",
    "name": "chain_index",
    "dtypes": ("float64", "float32", "bfloat16"),
}
INPUTS = {"atoms": "b n h 2*d", "chain_index": "range n"}
