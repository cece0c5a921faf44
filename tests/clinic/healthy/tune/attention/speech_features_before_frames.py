"""Text-to-speech code: channels before frames, and the map comes back too."""

import torch
from torch import nn


class FrameAttention(nn.Module):
    """What a relative-position speech encoder is left with without them.

    Everything here comes from 1x1 convolutions, so time is the last axis:
    (batch, head, channel, frame).
    """

    def __init__(self, p_dropout=0.0, keep_map=False):
        super().__init__()
        self.drop = nn.Dropout(p_dropout)
        self.keep_map = keep_map
        self.attn = None

    def forward(self, x_q, x_k, x_v, attn_mask=None):
        b, h, c, t_t = x_q.size()
        t_s = x_k.size(3)
        n_out = x_v.size(2)
        query = x_q.reshape(b * h, c, t_t) * c**-0.5
        score = torch.bmm(query.transpose(1, 2), x_k.reshape(b * h, c, t_s))
        score = score.view(b, h, t_t, t_s)
        if attn_mask is not None:
            floor = torch.finfo(score.dtype).min
            score = score.masked_fill(attn_mask == 0, floor)
        p_attn = self.drop(score.softmax(dim=3))
        if self.keep_map:
            self.attn = p_attn.detach()
        # (c, s) by (s, t): channels stay before frames
        value = x_v.reshape(b * h, n_out, t_s)
        p_t = p_attn.view(b * h, t_t, t_s).transpose(1, 2)
        return torch.bmm(value, p_t).view(b, h, n_out, t_t), p_attn


PATIENT = FrameAttention(p_dropout=0.1).eval()
FACTS = {
    "layout": "BHDN",
    "mask": "keep",
    "mask_axes": "B1NN",
    "empty_row": "average",
    "names": {"q": "x_q", "k": "x_k", "v": "x_v", "mask": "attn_mask"},
    "dropout": 0.1,
    "dtypes": ("float64", "float32", "bfloat16"),
}
INPUTS = {
    "x_q": "b h d n",
    "x_k": "b h d m",
    "x_v": "b h e m",
    "attn_mask?": "keep b 1 n m",
}
