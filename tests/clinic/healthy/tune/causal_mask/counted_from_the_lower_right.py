"""Destinations and sources, counted from the lower right corner."""

import torch


def attention_mask(nd, ns, *, dtype=torch.float32):
    """As tril(ones(nd, ns), ns - nd), in words that any backend has."""
    i = torch.arange(nd)[:, None]
    j = torch.arange(ns)
    m = i >= j - ns + nd
    return m.type(dtype)


PATIENT = attention_mask
FACTS = {"mask": "ones", "alignment": "last", "arguments": 2}
INPUTS = {"nd": "int n", "ns": "int n+3"}
OTHER_INPUTS = [{"nd": "int n", "ns": "int n"}]
