"""Speech: half a network, attention, a convolution, half a network, a norm."""

import torch
from torch import Tensor, nn


class Swish(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x * x.sigmoid()


class ConvModule(nn.Module):
    def __init__(self, channels: int, kernel: int):
        super().__init__()
        self.pointwise_in = nn.Conv1d(channels, 2 * channels, 1)
        self.glu = nn.GLU(dim=1)
        self.depthwise = nn.Conv1d(
            channels, channels, kernel, padding=kernel // 2, groups=channels
        )
        self.norm = nn.LayerNorm(channels)
        self.act = Swish()
        self.pointwise_out = nn.Conv1d(channels, channels, 1)

    def forward(self, x: Tensor, frames: Tensor | None) -> Tensor:
        x = x.transpose(1, 2)
        x = self.glu(self.pointwise_in(x))
        if frames is not None:  # else noise of the padding flows in
            x = x * frames.unsqueeze(1)
        x = self.depthwise(x).transpose(1, 2)
        x = self.act(self.norm(x)).transpose(1, 2)
        return self.pointwise_out(x).transpose(1, 2)


class Attn(nn.Module):
    def __init__(self, size: int, heads: int):
        super().__init__()
        self.h = heads
        self.linear_q = nn.Linear(size, size)
        self.linear_k = nn.Linear(size, size)
        self.linear_v = nn.Linear(size, size)
        self.linear_out = nn.Linear(size, size)

    def forward(self, x: Tensor, frames: Tensor | None) -> Tensor:
        b, t, c = x.size()
        q = self.linear_q(x).view(b, t, self.h, -1).transpose(1, 2)
        k = self.linear_k(x).view(b, t, self.h, -1).transpose(1, 2)
        v = self.linear_v(x).view(b, t, self.h, -1).transpose(1, 2)
        e = q.matmul(k.transpose(-2, -1)) / (c // self.h) ** 0.5
        if frames is not None:
            hidden = frames.logical_not()[:, None, None]
            e = e.masked_fill(hidden, torch.finfo(e.dtype).min)
            a = e.softmax(-1).masked_fill(hidden, 0.0)
        else:
            a = e.softmax(-1)
        y = a.matmul(v).transpose(1, 2).contiguous().view(b, t, c)
        return self.linear_out(y)


class SpeechLayer(nn.Module):
    def __init__(self, size: int, heads: int, kernel: int, rate: float):
        super().__init__()
        self.self_attn = Attn(size, heads)
        self.conv_module = ConvModule(size, kernel)
        self.feed_forward_macaron = self.network(size)
        self.feed_forward = self.network(size)
        self.norm_ff_macaron = nn.LayerNorm(size)
        self.norm_mha = nn.LayerNorm(size)
        self.norm_conv = nn.LayerNorm(size)
        self.norm_ff = nn.LayerNorm(size)
        self.norm_final = nn.LayerNorm(size)
        self.dropout = nn.Dropout(rate)

    @staticmethod
    def network(size: int) -> nn.Sequential:
        return nn.Sequential(
            nn.Linear(size, 2 * size), Swish(), nn.Linear(2 * size, size)
        )

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        y = self.feed_forward_macaron(self.norm_ff_macaron(x))
        x = x + 0.5 * self.dropout(y)
        x = x + self.dropout(self.self_attn(self.norm_mha(x), mask))
        x = x + self.dropout(self.conv_module(self.norm_conv(x), mask))
        x = x + 0.5 * self.dropout(self.feed_forward(self.norm_ff(x)))
        return self.norm_final(x)


PATIENT = SpeechLayer(8, 2, kernel=3, rate=0.1)
FACTS = {
    "formula": "own",
    "layout": "BND",
    "causal": False,
    "padding": "keep",
    "attention": "self_attn",
    "feed_forward": "feed_forward",
    "n_heads": 2,
    "dropout": 0.1,
}
INPUTS = {"x": "b n 8", "mask?": "real b n"}
