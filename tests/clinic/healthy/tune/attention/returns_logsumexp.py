"""A plain twin of a fused kernel: its options, its log-sum-exp."""

import torch


def attention_ref(
    q,
    k,
    v,
    softmax_scale=None,
    causal=False,
    softcap=0.0,
    return_lse=False,
):
    """Attention as the kernel promises it.

    Arguments:
        q: (batch_size, seqlen_q, nheads, head_dim)
        k: (batch_size, seqlen_k, nheads_k, head_dim)
        v: (batch_size, seqlen_k, nheads_k, head_dim_v)
    Output:
        output: (batch_size, seqlen_q, nheads, head_dim_v)
        lse, if asked for: (batch_size, nheads, seqlen_q)
    """
    seqlen_q, seqlen_k = q.shape[1], k.shape[1]
    groups = q.shape[2] // k.shape[2]
    if softmax_scale is None:
        softmax_scale = q.shape[3] ** (-0.5)
    k = k[:, :, :, None].expand(-1, -1, -1, groups, -1).flatten(2, 3)
    v = v[:, :, :, None].expand(-1, -1, -1, groups, -1).flatten(2, 3)
    scores = torch.einsum("bthd,bshd->bhts", q * softmax_scale, k)
    if softcap > 0:
        scores = softcap * torch.tanh(scores / softcap)
    if causal:
        row = torch.arange(seqlen_q, device=q.device).unsqueeze(-1)
        col = torch.arange(seqlen_k, device=q.device)
        hidden = col > row + seqlen_k - seqlen_q
        scores = scores.masked_fill(hidden, float("-inf"))
    lse = scores.logsumexp(dim=-1)
    attention = torch.exp(scores - lse.unsqueeze(-1))
    output = torch.einsum("bhts,bshd->bthd", attention, v)
    return (output, lse) if return_lse else output


PATIENT = attention_ref
FACTS = {"layout": "BNHD", "grouped": True, "alignment": "last"}
INPUTS = {
    "q": "b n 2*g d",
    "k": "b n+2 g d",
    "v": "b n+2 g e",
    "causal?": "true",
}
