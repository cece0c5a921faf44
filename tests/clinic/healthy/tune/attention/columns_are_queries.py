"""Typed off from a MATLAB script: a column for each query, one text."""

from torch import exp, max, sqrt, sum, tensor


def attn(Q, K, V):
    """Q is n by d, K is m by d, V is m by e; out comes n by e."""
    d = tensor(Q.shape[1], dtype=Q.dtype)
    S = K @ Q.T / sqrt(d)  # m by n: a column for each query
    S = S - max(S, 0).values
    E = exp(S)
    A = E / sum(E, 0)
    return A.T @ V


PATIENT = attn
FACTS = {"layout": "N D"}
INPUTS = {"Q": "n d", "K": "m d", "V": "m e"}
