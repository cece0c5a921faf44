"""Speech: scores of distances are made side by side, and shifted in place."""

import math

import torch
from torch import nn


def distances(n, width, like):
    """Sines and cosines of n - 1, …, 0, …, 1 - n."""
    far = torch.arange(n - 1, -n, -1.0, dtype=like.dtype, device=like.device)
    rates = torch.arange(0, width, 2, dtype=like.dtype, device=like.device)
    angles = far[:, None] * torch.exp(rates * -(math.log(1e4) / width))
    return torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(-2)


def rel_shift(x):
    """Row i of (b, h, n, 2n - 1) moves left by n - 1 - i; n columns stay."""
    b, h, n, wide = x.shape
    x = torch.cat((x.new_zeros(b, h, n, 1), x), dim=-1)
    x = x.view(b, h, wide + 1, n)[:, :, 1:].reshape(b, h, n, wide)
    return x[..., :n]


class RelPositionMultiHeadedAttention(nn.Module):
    def __init__(self, n_head, n_feat, dropout_rate):
        super().__init__()
        self.h, self.d_k = n_head, n_feat // n_head
        self.linear_q = nn.Linear(n_feat, n_feat)
        self.linear_k = nn.Linear(n_feat, n_feat)
        self.linear_v = nn.Linear(n_feat, n_feat)
        self.linear_out = nn.Linear(n_feat, n_feat)
        self.linear_pos = nn.Linear(n_feat, n_feat, bias=False)
        self.pos_bias_u = nn.Parameter(torch.empty(self.h, self.d_k))
        self.pos_bias_v = nn.Parameter(torch.empty(self.h, self.d_k))
        nn.init.xavier_uniform_(self.pos_bias_u)
        nn.init.xavier_uniform_(self.pos_bias_v)
        self.dropout = nn.Dropout(p=dropout_rate)

    def forward(self, x, mask=None):
        b, n, width = x.shape
        q = self.linear_q(x).view(b, n, self.h, self.d_k)
        k = self.linear_k(x).view(b, n, self.h, self.d_k).permute(0, 2, 3, 1)
        v = self.linear_v(x).view(b, n, self.h, self.d_k).transpose(1, 2)
        p = self.linear_pos(distances(n, width, x))
        p = p.view(2 * n - 1, self.h, self.d_k).permute(1, 2, 0)

        of_words = (q + self.pos_bias_u).transpose(1, 2) @ k
        of_places = rel_shift((q + self.pos_bias_v).transpose(1, 2) @ p)
        scores = (of_words + of_places) / math.sqrt(self.d_k)
        if mask is not None:
            hidden = mask.unsqueeze(1).eq(0)
            scores = scores.masked_fill(hidden, torch.finfo(x.dtype).min)
            attn = scores.softmax(dim=-1).masked_fill(hidden, 0.0)
        else:
            attn = scores.softmax(dim=-1)
        y = (self.dropout(attn) @ v).transpose(1, 2).contiguous()
        return self.linear_out(y.view(b, n, width))


PATIENT = RelPositionMultiHeadedAttention(2, 12, 0.1)
FACTS = {
    "layout": "BND",
    "causal": False,
    "formula": "own",
    "positions": "relative",
    "mask": "keep",
    "mask_axes": "BNN",
    "empty_row": "zeros",
    "n_heads": 2,
    "dropout": 0.1,
}
INPUTS = {"x": "b n 12", "mask?": "keep b n n"}
