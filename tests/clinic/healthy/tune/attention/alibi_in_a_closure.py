"""A long-context language model: a closure with slopes, causal by itself."""

import math

import torch


def slope_list(n):
    """Slopes for any number of heads, a power of two or not."""
    nearest = 2 ** math.floor(math.log2(n))
    start = 2.0 ** (-8.0 / nearest)
    slopes = [start ** (i + 1) for i in range(nearest)]
    if nearest < n:
        finer = 2.0 ** (-4.0 / nearest)
        extra = [finer ** (2 * i + 1) for i in range(n - nearest)]
        slopes += extra
    return slopes


def distances(tq, tk, **kw):
    """How far back each key lies; queries are the latest tokens."""
    now = torch.arange(tk - tq, tk, **kw)
    return now.unsqueeze(1) - torch.arange(tk, **kw).unsqueeze(0)


def build_attention(max_heads):
    tables = {h: slope_list(h) for h in range(1, max_heads + 1)}

    def attend(q, k, v):
        """q: (B, H, Tq, D); k, v: (B, H, Tk, D) with Tk >= Tq."""
        tq, tk = q.size(-2), k.size(-2)
        assert tq <= tk, "queries have to be among the keys"
        back = distances(tq, tk, device=q.device)
        slopes = q.new_tensor(tables[q.size(1)]).view(-1, 1, 1)
        bias = -slopes * back
        bias = bias.masked_fill(back < 0, -math.inf)
        logits = (q @ k.mT).mul(1 / math.sqrt(q.size(-1))).add(bias)
        return logits.softmax(-1) @ v

    return attend


def told_bias(n_heads, n_q, n_k):
    slopes = torch.tensor(slope_list(n_heads), dtype=torch.float64)
    return -slopes[:, None, None] * distances(n_q, n_k)


PATIENT = build_attention(max_heads=16)
FACTS = {
    "layout": "BHND",
    "causal": True,
    "alignment": "last",
    "bias": told_bias,
    "dtypes": ("float64", "float32"),
}
INPUTS = {"q": "b h n d", "k": "b h n d", "v": "b h n e"}
OTHER_INPUTS = [{"q": "b h n d", "k": "b h n+2 d", "v": "b h n+2 e"}]
