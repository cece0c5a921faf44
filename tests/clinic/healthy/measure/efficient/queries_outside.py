"""The second paper's loops: blocks of queries outside, of keys inside."""

import math

import torch

Br, Bc = 3, 4  # rows and columns of a tile


def flash_attention_2(Q, K, V, causal=False):
    """Returns O and, for a backward pass, the logsumexp L of each row."""
    N, M, d = Q.shape[2], K.shape[2], Q.shape[3]
    softmax_scale = 1.0 / math.sqrt(d)
    O_blocks, L_blocks = [], []

    for i in range(math.ceil(N / Br)):
        q_start, q_end = i * Br, min((i + 1) * Br, N)
        Q_i = Q[:, :, q_start:q_end]
        O_i = Q.new_zeros(*Q_i.shape[:-1], V.shape[-1])
        l_i = torch.zeros_like(Q_i[..., :1])
        m_i = torch.full_like(l_i, torch.finfo(Q.dtype).min)

        for j in range(math.ceil(M / Bc)):
            k_start, k_end = j * Bc, min((j + 1) * Bc, M)
            if causal and k_start > q_end - 1 + M - N:
                break  # this block and all after it lie ahead
            K_j = K[:, :, k_start:k_end]
            V_j = V[:, :, k_start:k_end]

            S_ij = torch.matmul(Q_i, K_j.transpose(-2, -1)) * softmax_scale
            if causal and k_end - 1 > q_start + M - N:
                row = torch.arange(q_start, q_end, device=Q.device)
                col = torch.arange(k_start, k_end, device=Q.device)
                hidden = col[None, :] > row[:, None] + M - N
                S_ij = S_ij.masked_fill(hidden, -float("inf"))

            m_new = torch.maximum(m_i, S_ij.amax(dim=-1, keepdim=True))
            P_ij = torch.exp(S_ij - m_new)
            alpha = torch.exp(m_i - m_new)
            l_i = alpha * l_i + P_ij.sum(dim=-1, keepdim=True)
            O_i = alpha * O_i + torch.matmul(P_ij, V_j)
            m_i = m_new

        O_blocks.append(O_i / l_i)
        L_blocks.append(m_i + torch.log(l_i))

    return torch.cat(O_blocks, dim=2), torch.cat(L_blocks, dim=2)


PATIENT = flash_attention_2
FACTS = {"layout": "BHND", "alignment": "last"}
INPUTS = {
    "Q": "b h n d",
    "K": "b h n+2 d",
    "V": "b h n+2 e",
    "causal?": "true",
}
OTHER_INPUTS = [{"Q": "b h n d", "K": "b h n d", "V": "b h n e"}]
SIZES = {"n": (1, 11)}
