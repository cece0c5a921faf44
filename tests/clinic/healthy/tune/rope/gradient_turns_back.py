"""A function of autograd's own: gradients turn by the opposite angle."""

import torch


def _turn(X, cos, sin):
    half = X.shape[-1] // 2
    Y = torch.empty_like(X)
    X0, X1 = X[..., :half], X[..., half:]
    Y[..., :half] = X0 * cos - X1 * sin
    Y[..., half:] = X1 * cos + X0 * sin
    return Y


class FastRope(torch.autograd.Function):
    @staticmethod
    def forward(ctx, Q, cos, sin):
        ctx.save_for_backward(cos, sin)
        return _turn(Q, cos, sin)

    @staticmethod
    def backward(ctx, dY):
        cos, sin = ctx.saved_tensors
        return _turn(dY, cos, -sin), None, None


def fast_rope_embedding(Q, seen_tokens=0):
    seq_len, head_dim = Q.shape[-2:]
    exps = torch.linspace(0, 1, head_dim // 2 + 1, dtype=torch.float64)[:-1]
    t = torch.arange(seq_len, dtype=torch.float64) + seen_tokens
    angles = torch.outer(t, 10000.0**-exps).to(Q.device)
    return FastRope.apply(Q, angles.cos().to(Q), angles.sin().to(Q))


PATIENT = fast_rope_embedding
FACTS = {"pairs": "halves", "layout": "BHND"}
INPUTS = {"Q": "b h n 2*d", "seen_tokens": "int s"}
SIZES = {"s": (0, 9)}
