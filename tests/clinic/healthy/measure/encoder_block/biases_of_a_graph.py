"""Molecules: what joins two atoms is added to scores; heads come last."""

import torch as th
import torch.nn as nn


class BiasedMHA(nn.Module):
    def __init__(self, feat_size, num_heads, drop=0.1):
        super().__init__()
        self.num_heads = num_heads
        self.q_proj = nn.Linear(feat_size, feat_size)
        self.k_proj = nn.Linear(feat_size, feat_size)
        self.v_proj = nn.Linear(feat_size, feat_size)
        self.out_proj = nn.Linear(feat_size, feat_size)
        self.drop = nn.Dropout(drop)

    def forward(self, atoms, attn_bias=None, attn_mask=None):
        b, n, width = atoms.shape
        d = width // self.num_heads
        q, k, v = (
            proj(atoms).view(b, n, self.num_heads, d)
            for proj in (self.q_proj, self.k_proj, self.v_proj)
        )
        # (b, asking, asked, heads), as the biases are stored
        logits = th.einsum("bihd,bjhd->bijh", q * d**-0.5, k)
        if attn_bias is not None:
            logits = logits + attn_bias
        if attn_mask is not None:
            logits = logits.masked_fill(attn_mask[..., None], -th.inf)
        share = self.drop(th.softmax(logits, dim=2))
        return self.out_proj(th.einsum("bijh,bjhd->bihd", share, v).flatten(2))


class GraphLayer(nn.Module):
    """Norms before or behind, as the experiment's file says."""

    def __init__(
        self, feat_size, hidden_size, num_heads, norm_first, dropout=0.1
    ):
        super().__init__()
        self.norm_first = norm_first
        self.attn = BiasedMHA(feat_size, num_heads, dropout)
        self.attn_norm = nn.LayerNorm(feat_size)
        self.ffn = nn.Sequential(
            nn.Linear(feat_size, hidden_size),
            nn.LeakyReLU(),
            nn.Dropout(dropout),
            nn.Linear(hidden_size, feat_size),
        )
        self.ffn_norm = nn.LayerNorm(feat_size)
        self.dropout = nn.Dropout(dropout)

    def forward(self, nfeat, attn_bias=None, attn_mask=None):
        passed_by = nfeat
        if self.norm_first:
            nfeat = self.attn_norm(nfeat)
        nfeat = self.attn(nfeat, attn_bias=attn_bias, attn_mask=attn_mask)
        nfeat = passed_by + self.dropout(nfeat)
        if not self.norm_first:
            nfeat = self.attn_norm(nfeat)

        passed_by = nfeat
        if self.norm_first:
            nfeat = self.ffn_norm(nfeat)
        nfeat = passed_by + self.dropout(self.ffn(nfeat))
        if not self.norm_first:
            nfeat = self.ffn_norm(nfeat)
        return nfeat


PATIENT = GraphLayer(12, 20, 3, norm_first=False)
FACTS = {
    "order": "post",
    "layout": "BND",
    "mask": "block",
    "mask_axes": "BNN",
    "attention": "attn",
    "feed_forward": "ffn",
    "norms": ["attn_norm", "ffn_norm"],
    "n_heads": 3,
    "dropout": 0.1,
}
INPUTS = {
    "nfeat": "b n 12",
    "attn_bias?": "bias b n n 3",
    "attn_mask?": "block b n n",
}
