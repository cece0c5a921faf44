"""Scores go through a function of head, query and key; so does the mask."""

import math

import torch


def closeness(score, h, q_idx, kv_idx):
    steps = (h + 1) * (q_idx - kv_idx).abs()
    return score - 0.25 * steps.to(score.dtype)


def causal(h, q_idx, kv_idx):
    return q_idx >= kv_idx


def flexible(query, key, value, score_mod=closeness, mask_mod=causal):
    _, H, Q_LEN, D = query.shape
    KV_LEN = key.shape[2]
    h = torch.arange(H, device=query.device).view(H, 1, 1)
    q_idx = torch.arange(Q_LEN, device=query.device).view(1, Q_LEN, 1)
    kv_idx = torch.arange(KV_LEN, device=query.device).view(1, 1, KV_LEN)

    score = torch.matmul(query, key.mT) / math.sqrt(D)
    if score_mod is not None:
        score = score_mod(score, h, q_idx, kv_idx)
    if mask_mod is not None:
        keep = mask_mod(h, q_idx, kv_idx)
        score = torch.where(keep, score, -float("inf"))
    return torch.matmul(torch.softmax(score, dim=-1), value)


def penalty(n_heads, n_q, n_k):
    far = (torch.arange(n_q)[:, None] - torch.arange(n_k)).abs()
    return -torch.arange(1, n_heads + 1)[:, None, None] / 4 * far


PATIENT = flexible
FACTS = {"layout": "BHND", "causal": True, "bias": penalty}
INPUTS = {"query": "b h n d", "key": "b h n d", "value": "b h n e"}
