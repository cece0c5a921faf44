"""A JAX user's: one packed table, and time is what `positions` says."""

import torch
from torch import nn

SELF, CROSS = 0, 1


def rms(x, scale, eps=1e-6):
    power = torch.mean(torch.square(x), dim=-1, keepdim=True)
    return x * torch.rsqrt(power + eps) * (1.0 + scale)


def split_heads(x, h):
    b, t, d = x.shape
    x = x.reshape(b, t, h, d // h)
    return x.swapaxes(1, 2).reshape(b * h, t, d // h)


def merge_heads(x, h):
    _, t, k = x.shape
    return x.reshape(-1, h, t, k).swapaxes(1, 2).reshape(-1, t, h * k)


def attend(x, source, kernels, bias, h):
    """kernels: q, k, v, o; bias: what is added to scores, per text, head."""
    q, k, v = (
        split_heads(torch.matmul(y, w), h)
        for y, w in zip((x, source, source), kernels[:3], strict=True)
    )
    scale = float(q.shape[-1]) ** -0.5
    logits = torch.bmm(q, k.mT) * scale + bias
    weights = torch.softmax(logits, dim=-1)
    out = merge_heads(torch.bmm(weights, v), h)
    return torch.matmul(out, kernels[3]), weights.unflatten(0, (-1, h))


class DecoderLayer(nn.Module):
    def __init__(self, d, h, f, layer, reach=5, rate=0.1):
        super().__init__()
        self.h, self.reach = h, reach
        self.dropout = nn.Dropout(rate)
        std = d**-0.5 / (1 + layer) ** 0.5
        self.attn_kernels = nn.Parameter(torch.randn(2, 4, d, d) * std)
        self.wi = nn.Parameter(torch.randn(3, d, f) * std)
        self.wo = nn.Parameter(torch.randn(f, d) * std)
        self.norm_scales = nn.Parameter(torch.zeros(3, 2, d))
        self.layer_scales = nn.Parameter(torch.full((3, d), 0.3))
        self.rel_bias = nn.Parameter(torch.zeros(h, reach + 1))

    def past(self, positions):
        """heads, n, n: a number for each distance back, and no future."""
        back = positions[:, None] - positions[None, :]
        bias = self.rel_bias[:, back.clamp(0, self.reach)]
        return bias.masked_fill(back < 0, -torch.inf)

    def residual(self, x, i, sublayer):
        before, behind = self.norm_scales[i]
        y, aux = sublayer(rms(x, before))
        y = self.dropout(rms(y, behind))
        return x + self.layer_scales[i] * y, aux

    def maxout(self, y):
        pieces = torch.einsum("btd,pdf->pbtf", y, self.wi)
        return torch.matmul(pieces.amax(dim=0), self.wo), None

    def forward(self, x, positions, encoded, where=None):
        own = self.past(positions).repeat(len(x), 1, 1)
        of_memory = x.new_zeros(())
        if where is not None:
            real = where.repeat_interleave(self.h, dim=0)[:, None]
            of_memory = x.new_zeros(real.shape).masked_fill(~real, -torch.inf)
        kernels, h = self.attn_kernels, self.h
        x, _ = self.residual(
            x, 0, lambda y: attend(y, y, kernels[SELF], own, h)
        )
        x, weights = self.residual(
            x, 1, lambda y: attend(y, encoded, kernels[CROSS], of_memory, h)
        )
        x, _ = self.residual(x, 2, self.maxout)
        return x, weights


PATIENT = DecoderLayer(d=8, h=2, f=10, layer=3)
FACTS = {
    "layout": "BND",
    "order": "sandwich",
    "formula": "own",
    "path": "clear",
    "causal": True,
    "padding": "keep",
    "n_heads": 2,
    "dropout": 0.1,
    "dtypes": ("float64", "float32", "bfloat16"),
}
INPUTS = {
    "x": "b n 8",
    "positions": "range n",
    "encoded": "b m 8",
    "where?": "real b m",
}
