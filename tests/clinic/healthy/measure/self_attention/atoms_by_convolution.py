"""For a chemist: atoms first, pointwise convolutions, and keys shared."""

import torch
from torch import nn


class AtomMixer(nn.Module):
    """Atoms of a molecule look at each other; keys serve several heads."""

    def __init__(self, channels, n_head, n_shared, p_drop=0.0):
        super().__init__()
        self.n_head, self.n_shared = n_head, n_shared
        self.width = channels // n_head
        narrow = self.width * n_shared
        self.ask = nn.Conv1d(channels, channels, kernel_size=1)
        self.show = nn.Conv1d(channels, narrow, kernel_size=1)
        self.tell = nn.Conv1d(channels, narrow, kernel_size=1)
        self.blend = nn.Conv1d(channels, channels, kernel_size=1)
        self.drop = nn.Dropout(p_drop)

    def heads(self, x, count):
        """(mol, count * width, atom) -> (mol, count, width, atom)."""
        return x.unflatten(1, (count, self.width))

    def forward(self, atoms, **kw):
        x = atoms.permute(1, 2, 0)  # mol, channel, atom
        each = self.n_head // self.n_shared
        q = self.heads(self.ask(x), self.n_head)
        k = self.heads(self.show(x), self.n_shared)
        v = self.heads(self.tell(x), self.n_shared)
        k = k.repeat_interleave(each, dim=1)
        v = v.repeat_interleave(each, dim=1)

        affinity = q.transpose(2, 3) @ k * self.width**-0.5
        ghost = kw.get("ghost")  # mol, 1, 1, atom: True is no atom
        if ghost is not None:
            affinity = affinity.masked_fill(ghost, -torch.inf)
        share = affinity.softmax(dim=-1)
        mixed = v @ self.drop(share).transpose(2, 3)
        out = self.blend(mixed.flatten(1, 2))
        return out.permute(2, 0, 1), share


PATIENT = AtomMixer(channels=16, n_head=4, n_shared=2, p_drop=0.1).eval()
FACTS = {
    "layout": "NBD",
    "causal": False,
    "mask": "block",
    "mask_axes": "B11N",
    "empty_row": "nan",
    "d_model": 16,
    "n_heads": 4,
    "dropout": 0.1,
    "names": {"x": "atoms", "mask": "ghost"},
    "projections": {"q": "ask", "k": "show", "v": "tell", "out": "blend"},
    "dtypes": ("float64", "float32", "bfloat16"),
}
INPUTS = {"atoms": "n b 16", "ghost?": "block b 1 1 n"}
