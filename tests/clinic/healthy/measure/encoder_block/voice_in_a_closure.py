"""For voices: a block is a function that remembers a drawer of tables."""

import math

import torch
from torch.nn import functional as F


def drawn_tables(width, hidden, layer, taps=3):
    """Seeded by the layer, so that a saved voice needs no file."""
    dice = torch.Generator().manual_seed(100 + layer)

    def table(*shape, fan_in):
        numbers = torch.randn(*shape, generator=dice, dtype=torch.float64)
        return numbers / math.sqrt(fan_in)

    return {
        "qkv": table(width, 3 * width, fan_in=width),
        "out": table(width, width, fan_in=width),
        "conv_1": table(hidden, width, taps, fan_in=taps * width),
        "conv_2": table(width, hidden, 1, fan_in=hidden),
        "norm_1": 1 + table(width, fan_in=4),
        "norm_2": 1 + table(width, fan_in=4),
    }


def waves(frames, width, like):
    at = torch.arange(frames, device=like.device, dtype=torch.float64)
    feature = torch.arange(width, device=like.device)
    angle = at[:, None] / 10000 ** ((feature // 2 * 2) / width)
    return torch.where(feature % 2 == 0, angle.sin(), angle.cos()).to(like)


def attended(x, mask, heads, qkv, out):
    b, n, width = x.shape
    cut = (x @ qkv).view(b, n, 3, heads, width // heads)
    q, k, v = cut.permute(2, 0, 3, 1, 4).reshape(3, b * heads, n, -1)
    bias = x.new_zeros(b * heads, 1, n)
    if mask is not None:
        floor = torch.finfo(x.dtype).min / 2
        bias = mask.clamp_min(floor).expand(b, heads, 1, n)
        bias = bias.reshape(b * heads, 1, n)
    scale = 1 / math.sqrt(width // heads)
    scores = torch.baddbmm(bias, q, k.transpose(1, 2), alpha=scale)
    mixed = torch.bmm(F.softmax(scores, dim=-1), v)
    mixed = mixed.view(b, heads, n, -1).transpose(1, 2).reshape(b, n, width)
    return mixed @ out, (k, v)


def convolved(x, mask, conv_1, conv_2):
    """Frames that are masked are silent for their neighbours as well."""
    if mask is not None:
        x = x.masked_fill(mask[:, 0, 0, :, None] != 0, 0.0)
    x = F.conv1d(x.transpose(1, 2), conv_1, padding="same")
    return F.conv1d(F.leaky_relu(x, 0.1), conv_2).transpose(1, 2)


def fft_block(width, heads, hidden, layer=0, drop_path=0.1):
    tables = drawn_tables(width, hidden, layer)

    def block(frames, mask=None, speaker=None, training=False):
        t = {name: table.to(frames) for name, table in tables.items()}
        shortcut = torch.rand(2) < drop_path if training else (False, False)
        x = frames
        placed = x + waves(x.shape[1], width, x)
        if speaker is not None:
            placed = placed + speaker[:, None]
        told, cache = attended(placed, mask, heads, t["qkv"], t["out"])
        told = torch.zeros_like(told) if shortcut[0] else told
        x = F.layer_norm(x + told, (width,), t["norm_1"])
        fed = convolved(x, mask, t["conv_1"], t["conv_2"])
        fed = torch.zeros_like(fed) if shortcut[1] else fed
        return F.layer_norm(x + fed, (width,), t["norm_2"]), cache

    return block


PATIENT = fft_block(width=8, heads=2, hidden=10, layer=3)
FACTS = {
    "layout": "BND",
    "order": "post",
    "formula": "plain",
    "mask": "add",
    "extra": "a closure; its network is a convolution over three frames",
    "dtypes": ("float64", "float32"),
}
INPUTS = {
    "frames": "b n 8",
    "mask?": "add b 1 1 n",
    "speaker?": "b 8",
}
