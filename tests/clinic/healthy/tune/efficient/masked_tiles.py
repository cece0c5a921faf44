"""Tiles of both sides with the mask cut alike; state in plain lists."""

import torch

EPSILON = 1e-30
ROWS, COLUMNS = 2, 3


def flash_forward(Q, K, V, mask=None):
    out = V.new_zeros(*Q.shape[:-1], V.shape[-1])
    norm = Q.new_zeros(*Q.shape[:-1], 1)
    m = torch.full_like(norm, torch.finfo(Q.dtype).min)

    Q_BLOCKS = list(torch.split(Q * Q.shape[-1] ** -0.5, ROWS, dim=2))
    K_BLOCKS = torch.split(K, COLUMNS, dim=2)
    V_BLOCKS = torch.split(V, COLUMNS, dim=2)
    O_BLOCKS = list(torch.split(out, ROWS, dim=2))
    l_BLOCKS = list(torch.split(norm, ROWS, dim=2))
    m_BLOCKS = list(torch.split(m, ROWS, dim=2))

    for j, (Kj, Vj) in enumerate(zip(K_BLOCKS, V_BLOCKS, strict=True)):
        for i, Qi in enumerate(Q_BLOCKS):
            S_ij = torch.einsum("... i d, ... j d -> ... i j", Qi, Kj)
            allowed = torch.ones_like(S_ij, dtype=torch.bool)
            if mask is not None:
                r, c = i * ROWS, j * COLUMNS
                allowed = mask[:, :, r : r + ROWS, c : c + COLUMNS]
                S_ij = S_ij.masked_fill(~allowed, torch.finfo(Q.dtype).min)

            m_new = torch.maximum(m_BLOCKS[i], S_ij.amax(-1, keepdim=True))
            P_ij = torch.exp(S_ij - m_new) * allowed
            decay = torch.exp(m_BLOCKS[i] - m_new)
            l_BLOCKS[i] = decay * l_BLOCKS[i] + P_ij.sum(-1, keepdim=True)
            O_BLOCKS[i] = decay * O_BLOCKS[i] + P_ij @ Vj
            m_BLOCKS[i] = m_new

    sums = torch.cat(l_BLOCKS, dim=2).clamp(min=EPSILON)
    return torch.cat(O_BLOCKS, dim=2) / sums


PATIENT = flash_forward
FACTS = {
    "layout": "BHND",
    "mask": "keep",
    "mask_axes": "B1NN",
    "empty_row": "zeros",
    "dtypes": ("float64", "float32", "bfloat16"),
}
INPUTS = {
    "Q": "b h n d",
    "K": "b h m d",
    "V": "b h m e",
    "mask?": "keep b 1 n m",
}
SIZES = {"n": (1, 9), "m": (1, 11)}
