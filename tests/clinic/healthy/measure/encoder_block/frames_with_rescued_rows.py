"""A video paper's: packed maps, and no frame is left without a sight."""

import torch
from torch import nn
from torch.nn import functional as F


class ClipAttention(nn.Module):
    """The functional of PyTorch, upon one table for all maps."""

    def __init__(self, width, heads, attn_drop):
        super().__init__()
        self.heads, self.attn_drop = heads, attn_drop
        self.in_proj_weight = nn.Parameter(torch.empty(3 * width, width))
        self.in_proj_bias = nn.Parameter(torch.zeros(3 * width))
        self.out_proj = nn.Linear(width, width)
        nn.init.xavier_uniform_(self.in_proj_weight)

    def hidden(self, x, frame_mask, padding_mask):
        """Both masks in one; whoever sees nothing sees itself."""
        b, n, _ = x.shape
        hidden = x.new_zeros(b, n, n, dtype=torch.bool)
        if frame_mask is not None:
            hidden = hidden | frame_mask
        if padding_mask is not None:
            hidden = hidden | padding_mask[:, None, :]
        none = hidden.all(dim=-1, keepdim=True)
        itself = torch.eye(n, dtype=torch.bool, device=x.device)
        return (hidden & ~(none & itself)).repeat_interleave(self.heads, 0)

    def forward(self, x, frame_mask=None, padding_mask=None):
        tokens_first = x.transpose(0, 1)
        out, _ = F.multi_head_attention_forward(
            tokens_first,
            tokens_first,
            tokens_first,
            x.shape[-1],
            self.heads,
            self.in_proj_weight,
            self.in_proj_bias,
            None,
            None,
            False,
            self.attn_drop,
            self.out_proj.weight,
            self.out_proj.bias,
            training=self.training,
            attn_mask=self.hidden(x, frame_mask, padding_mask),
            need_weights=False,
        )
        return out.transpose(0, 1)


class Mlp(nn.Module):
    def __init__(self, width, ratio, drop):
        super().__init__()
        self.layers = nn.ModuleList(
            [nn.Linear(width, ratio * width), nn.Linear(ratio * width, width)]
        )
        self.drop = nn.Dropout(drop)

    def forward(self, x, frame_mask=None, padding_mask=None):
        up, down = self.layers
        return down(self.drop(F.gelu(up(x))))


class ClipBlock(nn.Module):
    def __init__(self, width, heads, ratio=2, drop=0.5):
        super().__init__()
        self.sublayers = nn.ModuleList(
            [ClipAttention(width, heads, drop), Mlp(width, ratio, drop)]
        )
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.drops = nn.ModuleList(nn.Dropout(drop) for _ in range(2))

    def forward(self, clip, frame_mask=None, padding_mask=None):
        for sub, norm, drop in zip(
            self.sublayers, self.norms, self.drops, strict=True
        ):
            clip = norm(clip + drop(sub(clip, frame_mask, padding_mask)))
        return clip


PATIENT = ClipBlock(width=12, heads=3)
FACTS = {
    "layout": "BND",
    "order": "post",
    "attention": "sublayers.0",
    "norms": ("norms.0", "norms.1"),
    "feed_forward": "sublayers.1",
    "mask": "block",
    "padding": "block",
    "dropout": 0.5,
    "dtypes": ("float64", "float32"),
}
INPUTS = {
    "clip": "b n 12",
    "frame_mask?": "block n n",
    "padding_mask?": "padding b n",
}
