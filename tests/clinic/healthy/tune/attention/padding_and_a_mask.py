"""A translation toolkit's: one mask is added, the padding is filled in."""

import torch
import torch.nn.functional as F


def mask_scores(scores, num_heads, attn_mask, key_padding_mask):
    """scores is (bsz * num_heads, tgt_len, src_len), and so it stays."""
    if attn_mask is not None:
        scores = scores + attn_mask.unsqueeze(0)
    if key_padding_mask is not None:
        bsz, src_len = key_padding_mask.size()
        assert scores.size(0) == bsz * num_heads
        assert scores.size(2) == src_len
        padding = key_padding_mask.to(torch.bool)
        padding = padding.repeat_interleave(num_heads, dim=0).unsqueeze(1)
        scores = scores.masked_fill(padding, float("-inf"))
    return scores


def attend(q, k, v, key_padding_mask=None, attn_mask=None, need_weights=True):
    """Heads come second; key_padding_mask is True at padding."""
    bsz, num_heads, tgt_len, head_dim = q.size()
    q = q * head_dim**-0.5
    q, k, v = (t.flatten(0, 1) for t in (q, k, v))

    attn_weights = torch.bmm(q, k.transpose(1, 2))
    attn_weights = mask_scores(
        attn_weights, num_heads, attn_mask, key_padding_mask
    )
    attn_weights = F.softmax(attn_weights, dim=-1)

    attn = torch.bmm(attn_weights, v).view(bsz, num_heads, tgt_len, -1)
    if not need_weights:
        return attn, None
    return attn, attn_weights.view(bsz, num_heads, tgt_len, -1).mean(dim=1)


PATIENT = attend
FACTS = {
    "layout": "BHND",
    "mask": "block",
    "mask_axes": "BN",
    "names": {"mask": "key_padding_mask"},
    "empty_row": "nan",
}
INPUTS = {
    "q": "b h n d",
    "k": "b h m d",
    "v": "b h m e",
    "key_padding_mask?": "padding b m",
    "attn_mask?": "add n m",
}
