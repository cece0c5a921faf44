"""A port from an array framework: dims, traditional, base, scale, offset."""

import math

import torch


class RoPE:
    def __init__(self, dims, traditional=False, base=10000, scale=1.0):
        self.dims = dims
        self.traditional = traditional
        self.base = base
        self.scale = scale

    def _costheta_sintheta(self, N, offset, dtype):
        D = self.dims // 2
        kwds = {"dtype": torch.float64}
        positions = torch.arange(offset, offset + N, **kwds) * self.scale
        freqs = torch.exp(
            -torch.arange(0, D, **kwds) * (math.log(self.base) / D)
        )
        theta = positions.reshape(-1, 1) * freqs.reshape(1, -1)
        return torch.cos(theta).to(dtype), torch.sin(theta).to(dtype)

    def __call__(self, x, offset=0):
        shape = x.shape
        x = x.reshape(-1, shape[-2], shape[-1])
        cos, sin = self._costheta_sintheta(shape[-2], offset, x.dtype)
        if self.traditional:
            x1, x2 = x[..., : self.dims : 2], x[..., 1 : self.dims : 2]
        else:
            x1 = x[..., : self.dims // 2]
            x2 = x[..., self.dims // 2 : self.dims]
        rx1 = x1 * cos - x2 * sin
        rx2 = x1 * sin + x2 * cos
        if self.traditional:
            rx = torch.stack([rx1, rx2], dim=-1).flatten(-2)
        else:
            rx = torch.cat([rx1, rx2], dim=-1)
        if self.dims < shape[-1]:
            rx = torch.cat([rx, x[..., self.dims :]], dim=-1)
        return rx.reshape(shape)


PATIENT = RoPE(6)
FACTS = {"pairs": "halves", "layout": "BHND", "width": 8, "part": 0.75}
INPUTS = {"x": "b h n 8", "offset": "int s"}
SIZES = {"s": (0, 9)}
