"""No table of n²: chunks of keys are summarised, chunks of queries mapped."""

import math
from typing import NamedTuple

import torch
from torch import Tensor


class Summary(NamedTuple):
    """What a chunk of keys says to a chunk of queries."""

    exp_values: Tensor
    exp_weights: Tensor
    max_score: Tensor


def summarize(query: Tensor, key: Tensor, value: Tensor) -> Summary:
    scores = torch.einsum("bqhd,bkhd->bhqk", query, key)
    max_score = scores.amax(dim=-1, keepdim=True).detach()
    exp_weights = torch.exp(scores - max_score)
    exp_values = torch.einsum("bhqk,bkhf->bhqf", exp_weights, value)
    return Summary(
        exp_values, exp_weights.sum(dim=-1, keepdim=True), max_score
    )


def merge(summaries: list[Summary]) -> Tensor:
    values, weights, maxima = map(torch.stack, zip(*summaries, strict=True))
    global_max = maxima.amax(dim=0)
    max_diffs = torch.exp(maxima - global_max)
    all_values = (values * max_diffs).sum(dim=0)
    all_weights = (weights * max_diffs).sum(dim=0)
    return all_values / all_weights


def memory_efficient_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    query_chunk_size: int = 4,
    key_chunk_size: int = 3,
) -> Tensor:
    """query, key, value: [batch, tokens, heads, features]"""
    query = query / math.sqrt(query.shape[-1])
    res = []
    for q_chunk in query.split(query_chunk_size, dim=1):
        summaries = [
            summarize(
                q_chunk,
                key[:, start : start + key_chunk_size],
                value[:, start : start + key_chunk_size],
            )
            for start in range(0, key.shape[1], key_chunk_size)
        ]
        res.append(merge(summaries))
    return torch.cat(res, dim=2).transpose(1, 2)


PATIENT = memory_efficient_attention
FACTS = {"layout": "BNHD"}
INPUTS = {"query": "b n h d", "key": "b m h d", "value": "b m h e"}
SIZES = {"n": (1, 13), "m": (1, 11)}
