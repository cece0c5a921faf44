"""Groups by an axis that is expanded and folded away; causal by flag."""

import torch
import torch.nn.functional as F


def repeat_kv(x, times):
    b, h, n, d = x.shape
    x = x[:, :, None].expand(b, h, times, n, d)
    return x.reshape(b, h * times, n, d)


def attention(q, k, v, causal=False):
    times = q.size(1) // k.size(1)
    k, v = repeat_kv(k, times), repeat_kv(v, times)
    scores = torch.matmul(q, k.transpose(2, 3)) * q.size(3) ** -0.5
    if causal:
        blocked = torch.ones(scores.shape[-2:]).bool().triu(diagonal=1)
        scores = scores.masked_fill(blocked, torch.finfo(scores.dtype).min)
    return torch.matmul(F.softmax(scores, dim=-1), v)


PATIENT = attention
FACTS = {"layout": "BHND", "grouped": True, "alignment": "first"}
INPUTS = {
    "q": "b 2*g n d",
    "k": "b g n d",
    "v": "b g n e",
    "causal?": "true",
}
