"""For export as one operator: its backward is by hand, and many options."""

import math

import torch


def visible(n, m, causal, left, right, first, device):
    i = torch.arange(first, first + n, device=device).unsqueeze(1)
    j = torch.arange(m, device=device)
    seen = torch.ones(n, m, dtype=torch.bool, device=device)
    if causal:
        seen = seen & (j <= i)
    if left >= 0:
        seen = seen & (j >= i - left)
    if right >= 0:
        seen = seen & (j <= i + right)
    return seen


def capped(Q, K, scale, softcap):
    raw = torch.matmul(Q * scale, K.transpose(2, 3))
    return softcap * torch.tanh(raw / softcap) if softcap > 0 else raw


class AttentionOp(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(K, V, Q, seen, scale, softcap):
        S = capped(Q, K, scale, softcap).masked_fill(~seen, -math.inf)
        top = S.amax(dim=3, keepdim=True)
        top = torch.where(top == -math.inf, torch.zeros_like(top), top)
        E = torch.exp(S - top)
        total = E.sum(dim=3, keepdim=True)
        Y = torch.matmul(E / (total + (total == 0)), V)
        return Y, (total.log() + top).squeeze(3)

    @staticmethod
    def setup_context(ctx, inputs, output):
        K, V, Q, seen, ctx.scale, ctx.softcap = inputs
        ctx.save_for_backward(K, V, Q, seen, *output)

    @staticmethod
    def backward(ctx, dY, dL):
        K, V, Q, seen, Y, lse = ctx.saved_tensors
        S = capped(Q, K, ctx.scale, ctx.softcap)
        P = torch.exp(S - lse.unsqueeze(3)).masked_fill(~seen, 0.0)
        delta = (dY * Y).sum(dim=3) - dL
        dP = torch.matmul(dY, V.transpose(2, 3))
        dS = P * (dP - delta.unsqueeze(3))
        if ctx.softcap > 0:
            dS = dS * (1 - (S / ctx.softcap) ** 2)
        dS = dS * ctx.scale
        dK = torch.matmul(dS.transpose(2, 3), Q)
        dV = torch.matmul(P.transpose(2, 3), dY)
        return dK, dV, torch.matmul(dS, K), None, None, None


def attention(
    K,
    V,
    Q,
    is_causal=0,
    scale=None,
    softcap=0.0,
    left=-1,
    right=-1,
    first_query=0,
    softmax_precision=None,
):
    """Attributes as in the operator's schema; gives Y and log of the sums."""
    scale = 1.0 / math.sqrt(Q.size(3)) if scale is None else float(scale)
    n, m, given = Q.size(2), K.size(2), Q.dtype
    seen = visible(n, m, bool(is_causal), left, right, first_query, Q.device)
    inside = softmax_precision or given
    K, V, Q = (X.to(inside) for X in (K, V, Q))
    Y, lse = AttentionOp.apply(K, V, Q, seen, scale, softcap)
    return Y.to(given), lse


PATIENT = attention
FACTS = {
    "layout": "BHND",
    "causal": False,
    "alignment": "first",
    "names": {"q": "Q", "k": "K", "v": "V", "causal": "is_causal"},
    "dtypes": ("float64", "float32"),
}
INPUTS = {
    "Q": "b h n d",
    "K": "b h m d",
    "V": "b h m e",
    "is_causal?": "true",
}
