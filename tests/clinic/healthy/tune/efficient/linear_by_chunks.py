"""Linear, causal, in chunks: inside them a table, between them a state."""

import torch
import torch.nn.functional as F


def chunk_linear_attn(q, k, v, chunk_size=4):
    """q, k: (B, T, H, K); v: (B, T, H, V)"""
    B, T, H, K = q.shape
    V = v.shape[-1]
    q, k = F.softplus(q), F.softplus(k)

    S = q.new_zeros(B, H, K, V)
    z = q.new_zeros(B, H, K)
    o = []
    for start in range(0, T, chunk_size):
        stop = min(start + chunk_size, T)
        qc, kc, vc = q[:, start:stop], k[:, start:stop], v[:, start:stop]

        # within the chunk
        A = torch.einsum("bthk,bshk->bhts", qc, kc).tril()
        intra = torch.einsum("bhts,bshv->bthv", A, vc)
        # from all chunks before
        inter = torch.einsum("bthk,bhkv->bthv", qc, S)
        norm = A.sum(-1).transpose(1, 2)
        norm = norm + torch.einsum("bthk,bhk->bth", qc, z)
        o.append((intra + inter) / norm[..., None])

        S = S + torch.einsum("bshk,bshv->bhkv", kc, vc)
        z = z + kc.sum(dim=1)
    return torch.cat(o, dim=1)


PATIENT = chunk_linear_attn
FACTS = {
    "layout": "BNHD",
    "kernel": F.softplus,
    "causal": True,
    "square": True,
}
INPUTS = {"q": "b n h d", "k": "b n h d", "v": "b n h e"}
SIZES = {"n": (1, 13)}
LOUDEST = 4
