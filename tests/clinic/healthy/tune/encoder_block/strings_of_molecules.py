"""A chemist's: strings of molecules, never read from right to left."""

import torch
from torch import nn
from torch.nn import functional as F

LONGEST = 64


class MoleculeBlock(nn.Module):
    def __init__(self, n_emb, n_head, n_conv, drop=0.2):
        super().__init__()
        self.n_head, self.drop = n_head, drop
        self.Wq = nn.Parameter(torch.randn(n_emb, n_emb) / n_emb**0.5)
        self.Wk = nn.Parameter(torch.randn(n_emb, n_emb) / n_emb**0.5)
        self.Wv = nn.Parameter(torch.randn(n_emb, n_emb) / n_emb**0.5)
        self.Wo = nn.Parameter(torch.randn(n_emb, n_emb) / n_emb**0.5)
        self.place = nn.Parameter(torch.randn(LONGEST, n_emb) * 0.1)
        self.conv1 = nn.Conv1d(n_emb, n_conv, 3)
        self.conv2 = nn.Conv1d(n_conv, n_emb, 1)
        self.shrink1 = nn.Parameter(torch.full((n_emb,), 0.5))
        self.shrink2 = nn.Parameter(torch.full((n_emb,), 0.5))
        self.ln1_w, self.ln1_b = self.affine(n_emb)
        self.ln2_w, self.ln2_b = self.affine(n_emb)
        later = torch.ones(LONGEST, LONGEST, dtype=torch.bool).triu(1)
        self.register_buffer("later", later, persistent=False)

    @staticmethod
    def affine(n):
        return nn.Parameter(torch.ones(n)), nn.Parameter(torch.zeros(n))

    def heads(self, t):
        """B N (H D) -> (B H) N D"""
        b, n, c = t.shape
        t = t.reshape(b, n, self.n_head, c // self.n_head)
        return t.movedim(2, 1).reshape(b * self.n_head, n, -1)

    def forward(self, x, *, head_mask=None):
        b, n, c = x.shape
        placed = x + self.place[:n]
        q, k = self.heads(placed @ self.Wq), self.heads(placed @ self.Wk)
        att = torch.bmm(q, k.transpose(1, 2)) / (c // self.n_head) ** 0.5
        att = att.masked_fill(self.later[:n, :n], -torch.inf)
        att = F.dropout(F.softmax(att, dim=-1), self.drop, self.training)
        if head_mask is not None:
            att = att * head_mask.repeat(b)[:, None, None]
        y = torch.bmm(att, self.heads(x @ self.Wv))
        # (B H) N D -> B N (H D)
        y = y.reshape(b, self.n_head, n, -1).movedim(1, 2).reshape(b, n, c)
        y = F.dropout(y @ self.Wo, self.drop, self.training)
        x = F.layer_norm(x + self.shrink1 * y, (c,), self.ln1_w, self.ln1_b)

        z = F.pad(x.transpose(1, 2), (2, 0))  # the two atoms before
        z = self.conv2(F.relu(self.conv1(z))).transpose(1, 2)
        z = F.dropout(z, self.drop, self.training)
        x = F.layer_norm(x + self.shrink2 * z, (c,), self.ln2_w, self.ln2_b)
        return x, att.view(b, self.n_head, n, n)


PATIENT = MoleculeBlock(n_emb=15, n_head=3, n_conv=10)
FACTS = {
    "layout": "BND",
    "order": "post",
    "formula": "own",
    "path": "free",
    "causal": True,
    "n_heads": 3,
    "dropout": 0.2,
    "extra": "a network that looks at three tokens",
    "dtypes": ("float64", "float32"),
}
INPUTS = {"x": "b n 15", "head_mask?": "3"}
