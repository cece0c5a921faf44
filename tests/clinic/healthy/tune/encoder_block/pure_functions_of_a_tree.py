"""As in JAX: pure functions of a tree of weights; a thin module holds it."""

import torch
from torch import nn


def dense(p, x):
    return x @ p["w"] + p["b"]


def layer_norm(p, x, eps=1e-6):
    x = x - x.mean(-1, keepdim=True)
    x = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)
    return x * p["scale"] + p["offset"]


def attention(p, x, mask, n_heads):
    q, k, v = (
        dense(p[name], x).unflatten(-1, (n_heads, -1))
        for name in ("query", "key", "value")
    )
    logits = torch.einsum("...thd,...Thd->...htT", q, k)
    logits = logits / q.shape[-1] ** 0.5
    if mask is not None:
        logits = torch.where(mask, logits, -1e30)
    weights = logits.softmax(dim=-1)
    out = torch.einsum("...htT,...Thd->...thd", weights, v)
    return dense(p["linear"], out.flatten(-2))


def mlp(p, x):
    return dense(p["out"], nn.functional.gelu(dense(p["in"], x)))


def block(p, x, mask, n_heads):
    x = x + attention(p["attn"], layer_norm(p["ln_1"], x), mask, n_heads)
    return x + mlp(p["mlp"], layer_norm(p["ln_2"], x))


def init_dense(rows, columns):
    w = torch.randn(rows, columns) * rows**-0.5
    return {"w": w, "b": torch.zeros(columns)}


def init_norm(d):
    return {"scale": torch.ones(d), "offset": torch.zeros(d)}


def init_block(d, hidden):
    names = ("query", "key", "value", "linear")
    return {
        "ln_1": init_norm(d),
        "attn": {name: init_dense(d, d) for name in names},
        "ln_2": init_norm(d),
        "mlp": {"in": init_dense(d, hidden), "out": init_dense(hidden, d)},
    }


class Tree(nn.Module):
    """Weights that `nn.Module` can find, and functions as dictionaries."""

    def __init__(self, leaves):
        super().__init__()
        for name, leaf in leaves.items():
            held = Tree(leaf) if isinstance(leaf, dict) else nn.Parameter(leaf)
            setattr(self, name, held)

    def __getitem__(self, name):
        return getattr(self, name)


class Transformed(nn.Module):
    def __init__(self, d, hidden, n_heads):
        super().__init__()
        self.params = Tree(init_block(d, hidden))
        self.n_heads = n_heads

    def forward(self, x, mask=None):
        return block(self.params, x, mask, self.n_heads)


PATIENT = Transformed(12, 16, 2)
FACTS = {
    "order": "pre",
    "layout": "BND",
    "mask": "keep",
    "n_heads": 2,
    "dtypes": ("float64", "float32", "bfloat16"),
}
INPUTS = {"x": "b n 12", "mask?": "keep n n"}
