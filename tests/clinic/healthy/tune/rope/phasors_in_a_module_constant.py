"""Llama's way: unit complex numbers, made once, multiply (b, n, heads, d)."""

import torch

THETA = 10000.0
HEAD_DIM = 8
MAX_SEQ_LEN = 64


def precompute_phasors(dim: int, end: int, theta: float = THETA):
    exponents = torch.arange(dim // 2, dtype=torch.float64).mul(2 / dim)
    freqs = theta**-exponents
    t = torch.arange(end, dtype=torch.float64)
    return torch.exp(1j * torch.einsum("i,j->ij", t, freqs))


PHASORS = precompute_phasors(HEAD_DIM, MAX_SEQ_LEN)


def apply_rotary_emb(xq, start_pos):
    seqlen = xq.shape[1]
    phasors = PHASORS[start_pos : start_pos + seqlen].to(xq.device)
    # the real type in which halves would lose their digits
    wide = xq.to(torch.promote_types(xq.dtype, torch.float32))
    xq_ = torch.view_as_complex(
        wide.reshape(*wide.shape[:-1], HEAD_DIM // 2, 2).contiguous()
    )
    phasors = phasors.to(xq_.dtype).view(1, seqlen, 1, HEAD_DIM // 2)
    xq_out = torch.view_as_real(xq_ * phasors).flatten(3)
    return xq_out.to(xq.dtype)


PATIENT = apply_rotary_emb
FACTS = {"pairs": "neighbours", "layout": "BNHD", "width": 8, "longest": 64}
INPUTS = {"xq": "b n h 8", "start_pos": "int s"}
SIZES = {"s": (0, 9)}
