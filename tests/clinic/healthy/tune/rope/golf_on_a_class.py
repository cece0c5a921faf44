"""Golfed: static methods of a class that nobody makes, half is turned."""

import torch as t


class R:
    @staticmethod
    def a(n, w, o, B, dev):
        i = t.arange(0, w, 2, device=dev, dtype=t.double)
        return (t.arange(n, device=dev).double() + o)[:, None] / B ** (i / w)

    @staticmethod
    def s(x):
        return t.stack((-x[..., 1::2], x[..., ::2]), -1).flatten(-2)

    @staticmethod
    def f(x, o=0, p=0.5, B=1e4, full=False, tables=False, inv=False):
        w = x.size(-1) if full else int(x.size(-1) * p)
        a = R.a(x.size(-3), w, o, B, x.device) * (1 - 2 * inv)
        c, s = (
            g(a).repeat_interleave(2, -1)[:, None].to(x.dtype)
            for g in (t.cos, t.sin)
        )
        y, z = x[..., :w], x[..., w:]
        r = t.cat((y * c + R.s(y) * s, z), -1)
        return (r, (c, s)) if tables else r


PATIENT = R.f
FACTS = {
    "pairs": "neighbours",
    "layout": "BNHD",
    "told": "offset",
    "name": "o",
    "part": 0.5,
    "dtypes": ("float64", "float32", "bfloat16"),
}
INPUTS = {"x": "b n h 4*d", "o": "int s"}
