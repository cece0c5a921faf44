"""An exam's answer: each token turns a step further, by addition of angles."""

import math

import torch


def encode(h, n0):
    """h: (batch, heads, tokens, features); n0: number of the first token."""
    d = h.size(3)
    dev = h.device
    theta = [math.pow(10000.0, -2.0 * k / d) for k in range(d // 2)]
    step_c = torch.tensor(
        [math.cos(t) for t in theta], dtype=torch.float64, device=dev
    )
    step_s = torch.tensor(
        [math.sin(t) for t in theta], dtype=torch.float64, device=dev
    )
    c = torch.ones_like(step_c)
    s = torch.zeros_like(step_s)
    answer = []
    for m in range(n0 + h.size(2)):
        if m >= n0:
            co, si = c.to(h.dtype), s.to(h.dtype)
            u, v = h[:, :, m - n0, : d // 2], h[:, :, m - n0, d // 2 :]
            answer.append(torch.cat((co * u - si * v, si * u + co * v), 2))
        # cos(a + b) and sin(a + b)
        c, s = c * step_c - s * step_s, s * step_c + c * step_s
    return torch.stack(answer, dim=2)


PATIENT = encode
FACTS = {"pairs": "halves", "layout": "BHND"}
INPUTS = {"h": "b h n 2*d", "n0": "int s"}
SIZES = {"s": (0, 9)}
