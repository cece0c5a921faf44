"""The farther away, the lower the score: a slope for each head. Causal."""

import torch


def slopes(heads):
    steps = torch.arange(1, heads + 1, dtype=torch.float64)
    return 2.0 ** (-8 * steps / heads)


def alibi_attention(q, k, v):
    heads, n = q.shape[1], q.shape[2]
    position = torch.arange(n, device=q.device)
    distance = (position[None, :] - position[:, None]).to(q.dtype)
    bias = slopes(heads).to(q)[:, None, None] * distance
    scores = q @ k.transpose(2, 3) / q.shape[3] ** 0.5 + bias
    future = position[None, :] > position[:, None]
    scores = scores.masked_fill(future, float("-inf"))
    return torch.softmax(scores, dim=-1) @ v


def penalty(n_heads, n_q, n_k):
    slope = 0.5 ** (8 * torch.arange(1, n_heads + 1).double() / n_heads)
    far = torch.arange(n_q)[:, None] - torch.arange(n_k)
    return -slope[:, None, None] * far


PATIENT = alibi_attention
FACTS = {"layout": "BHND", "causal": True, "bias": penalty}
INPUTS = {"q": "b h n d", "k": "b h n d", "v": "b h n e"}
