"""Three quarters of the features are rotated; what is left is copied."""

import torch


class PartialRope(torch.nn.Module):
    def __init__(self, width, turned):
        super().__init__()
        self.turned = turned
        powers = torch.arange(turned // 2, dtype=torch.float64)
        self.theta = 10000 ** (-2 * powers / turned)

    def forward(self, x, offset=0):
        n = x.size(-2)
        m = torch.arange(offset, offset + n, dtype=torch.float64)[:, None]
        c, s = torch.cos(m * self.theta), torch.sin(m * self.theta)
        c, s = c.to(x.dtype), s.to(x.dtype)
        y = x.clone()
        a, b = x[..., 0 : self.turned : 2], x[..., 1 : self.turned : 2]
        y[..., 0 : self.turned : 2] = a * c - b * s
        y[..., 1 : self.turned : 2] = a * s + b * c
        return y


PATIENT = PartialRope(8, 6)
FACTS = {"pairs": "neighbours", "layout": "BHND", "width": 8, "part": 0.75}
INPUTS = {"x": "b h n 8", "offset": "int s"}
SIZES = {"s": (0, 9)}
