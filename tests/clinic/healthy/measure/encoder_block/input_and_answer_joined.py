"""Speech: x and what attention says stand side by side, and a map joins."""

import torch
from torch import nn


class MultiHeadedAttention(nn.Module):
    def __init__(self, n_head: int, n_feat: int, dropout_rate: float):
        super().__init__()
        if n_feat % n_head:
            raise ValueError(f"{n_feat} features for {n_head} heads")
        self.h, self.d_k = n_head, n_feat // n_head
        self.linear_q = nn.Linear(n_feat, n_feat)
        self.linear_k = nn.Linear(n_feat, n_feat)
        self.linear_v = nn.Linear(n_feat, n_feat)
        self.linear_out = nn.Linear(n_feat, n_feat)
        self.dropout = nn.Dropout(dropout_rate)

    def cut(self, x):
        """(batch, time, features) to (batch, head, time, d_k)."""
        return x.view(*x.shape[:2], self.h, self.d_k).transpose(1, 2)

    def weigh(self, scores, mask):
        if mask is None:
            return scores.softmax(dim=-1)
        silent = (~mask).unsqueeze(1)
        scores = scores.masked_fill(silent, -float("inf"))
        # frames that hear nothing hear nothing, and not nan
        return scores.softmax(dim=-1).masked_fill(silent, 0.0)

    def forward(self, query, memory, mask=None):
        q = self.cut(self.linear_q(query))
        k = self.cut(self.linear_k(memory))
        v = self.cut(self.linear_v(memory))
        scores = q.matmul(k.transpose(-2, -1)) * self.d_k**-0.5
        heard = self.dropout(self.weigh(scores, mask)).matmul(v)
        return self.linear_out(heard.transpose(1, 2).flatten(2))


class SpeechEncoderLayer(nn.Module):
    """Its sublayers are made elsewhere, by whoever read the recipe."""

    def __init__(
        self,
        size: int,
        self_attn: nn.Module,
        feed_forward: nn.Module,
        dropout_rate: float,
        concat_after: bool = False,
    ):
        super().__init__()
        self.self_attn = self_attn
        self.feed_forward = feed_forward
        self.norm_mha = nn.LayerNorm(size, eps=1e-5)
        self.norm_ff = nn.LayerNorm(size, eps=1e-5)
        self.dropout = nn.Dropout(dropout_rate)
        self.join = nn.Linear(2 * size, size) if concat_after else None

    def forward(self, xs, masks=None):
        ys = self.norm_mha(xs)
        heard = self.self_attn(ys, ys, masks)
        if self.join is not None:
            xs = xs + self.join(torch.cat((ys, heard), dim=-1))
        else:
            xs = xs + self.dropout(heard)
        ys = self.norm_ff(xs)
        xs = xs + self.dropout(self.feed_forward(ys))
        return xs, masks


def recipe(size, heads, units, rate):
    return SpeechEncoderLayer(
        size,
        MultiHeadedAttention(heads, size, rate),
        nn.Sequential(
            nn.Linear(size, units),
            nn.Hardswish(),
            nn.Dropout(rate),
            nn.Linear(units, size),
        ),
        rate,
        concat_after=True,
    )


PATIENT = recipe(12, 3, 19, 0.1)
FACTS = {
    "order": "pre",
    "formula": "own",
    "layout": "BND",
    "mask": "keep",
    "mask_axes": "BNN",
    "empty_row": "zeros",
    "attention": "self_attn",
    "feed_forward": "feed_forward",
    "norms": ["norm_mha", "norm_ff"],
    "n_heads": 3,
    "dropout": 0.1,
}
INPUTS = {"xs": "b n 12", "masks?": "keep b n n"}
