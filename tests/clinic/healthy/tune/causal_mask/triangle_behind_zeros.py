"""Numbers to add, from the number of queries and of keys."""

import torch


def additive_causal(n_q, n_k):
    past = n_k - n_q
    zeros = torch.zeros(n_q, past)
    square = torch.zeros(n_q, n_q).masked_fill(
        torch.ones(n_q, n_q).triu(1) == 1, float("-inf")
    )
    return torch.hstack([zeros, square])


PATIENT = additive_causal
FACTS = {"mask": "add", "alignment": "last", "arguments": 2}
INPUTS = {"n_q": "int n", "n_k": "int n+3"}
OTHER_INPUTS = [{"n_q": "int n", "n_k": "int n"}]
