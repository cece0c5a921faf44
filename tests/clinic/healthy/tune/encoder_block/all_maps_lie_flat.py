"""For a competition: all in one class, time first, norms behind the sums."""

import numpy as np
import torch
import torch.nn as nn


class TransformerLayer(nn.Module):
    def __init__(self, d=12, nh=3, ff=24, p=0.1):
        super().__init__()
        self.nh, self.dh = nh, d // nh
        self.wq = nn.Linear(d, d)
        self.wk = nn.Linear(d, d)
        self.wv = nn.Linear(d, d)
        self.wo = nn.Linear(d, d)
        self.fc1 = nn.Linear(d, ff)
        self.act = nn.GELU()
        self.fc2 = nn.Linear(ff, d)
        self.ln1 = nn.LayerNorm(d, eps=1e-12)
        self.ln2 = nn.LayerNorm(d, eps=1e-12)
        self.drop = nn.Dropout(p)

    def cut(self, t):
        # n b d -> (b h) n dh
        n, b, _ = t.shape
        return t.contiguous().view(n, b * self.nh, self.dh).transpose(0, 1)

    def forward(self, src, src_mask=None):
        n, b, d = src.shape
        q, k, v = [self.cut(w(src)) for w in (self.wq, self.wk, self.wv)]
        att = torch.bmm(q / np.sqrt(self.dh), k.transpose(1, 2))
        if src_mask is not None:
            att += src_mask  # n n, -inf: hidden
        att = self.drop(torch.softmax(att, -1))
        out = torch.bmm(att, v).transpose(0, 1).contiguous().view(n, b, d)

        src = self.ln1(src + self.drop(self.wo(out)))
        out = self.fc2(self.drop(self.act(self.fc1(src))))
        return self.ln2(src + self.drop(out))


PATIENT = TransformerLayer().eval()
FACTS = {
    "layout": "NBD",
    "order": "post",
    "flat_attention": ("wq", "wk", "wv", "wo"),
    "flat_feed_forward": ("fc1", "act", "fc2"),
    "norms": ("ln1", "ln2"),
    "n_heads": 3,
    "mask": "add",
    "names": {"x": "src", "mask": "src_mask"},
    "dropout": 0.1,
    "dtypes": ("float64", "float32"),
}
INPUTS = {"src": "n b 12", "src_mask?": "add n n"}
