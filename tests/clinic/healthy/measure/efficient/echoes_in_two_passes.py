"""From radar: one pass over the gates for their level, one for the sum."""

import math

import torch


def gates(k, v, size):
    """Blocks of keys and values, and where each begins."""
    starts = range(0, k.shape[2], size)
    return zip(starts, k.split(size, 2), v.split(size, 2), strict=True)


def amplitudes(q, k_block, start, offset, causal, scale):
    a = torch.einsum("zcpf,zcgf->zcpg", q, k_block) * scale
    if not causal:
        return a
    pulse = torch.arange(q.shape[2], device=q.device) + offset
    gate = torch.arange(k_block.shape[2], device=q.device) + start
    # half the lowest number: its logarithmic sum with others stays finite
    return a.masked_fill(gate > pulse[:, None], 0.5 * torch.finfo(a.dtype).min)


def attention(
    q,
    k,
    v,
    causal=False,
    gate_size=3,
    scale=None,
    offset=None,
    return_level=False,
):
    """(scans, channels, pulses, features); level is the log of the sum."""
    scale = 1 / math.sqrt(q.shape[3]) if scale is None else scale
    offset = k.shape[2] - q.shape[2] if offset is None else offset
    if causal and offset < 0:
        raise ValueError("the first pulse would see nothing")
    told = (offset, causal, scale)
    level = None
    for start, k_block, _ in gates(k, v, gate_size):
        here = amplitudes(q, k_block, start, *told).logsumexp(-1, True)
        level = here if level is None else torch.logaddexp(level, here)
    out, total = 0, 0  # the level is rounded, so shares are summed, too
    for start, k_block, v_block in gates(k, v, gate_size):
        share = (amplitudes(q, k_block, start, *told) - level).exp()
        total = total + share.sum(-1, keepdim=True)
        out = out + torch.einsum("zcpg,zcgf->zcpf", share, v_block)
    out = out / total
    return (out, level.squeeze(-1)) if return_level else out


PATIENT = attention
FACTS = {
    "layout": "BHND",
    "formula": "claimed",
    "alignment": "last",
    "dtypes": ("float64", "float32"),
}
INPUTS = {
    "q": "b h n d",
    "k": "b h n+3 d",
    "v": "b h n+3 e",
    "causal?": "true",
}
OTHER_INPUTS = [{"q": "b h n d", "k": "b h m d", "v": "b h m e"}]
