"""A production model with groups of queries: five axes, capped scores."""

import torch


def cap_logits(logits: torch.Tensor, cap: float) -> torch.Tensor:
    """Squeezes scores smoothly between -cap and cap."""
    return torch.tanh(logits / cap) * cap


def as_additive(segment_mask: torch.Tensor, like: torch.Tensor):
    """(B, T, S) booleans as (B, 1, 1, T, S) numbers to add."""
    zeros = torch.zeros(segment_mask.shape, dtype=like.dtype)
    zeros = zeros.to(like.device)
    lowest = torch.finfo(like.dtype).min
    return zeros.masked_fill(~segment_mask, lowest)[:, None, None]


class GroupedQueryCore(torch.nn.Module):
    """B batch, T targets, S sources, K groups, G queries in one, H width."""

    def __init__(self, attn_logits_soft_cap: float | None = None) -> None:
        super().__init__()
        self.cap = attn_logits_soft_cap

    def forward(
        self,
        query_proj: torch.Tensor,
        key_proj: torch.Tensor,
        value_proj: torch.Tensor,
        attn_mask: torch.Tensor | None = None,
    ) -> torch.Tensor:
        N, H = query_proj.shape[2:]
        K = key_proj.shape[2]
        if N % K:
            raise ValueError(f"{N} query heads for {K} key heads")
        query_scaled = query_proj.unflatten(2, (K, N // K)) * H**-0.5

        logits = torch.einsum("BTKGH,BSKH->BKGTS", query_scaled, key_proj)
        if self.cap is not None:
            logits = cap_logits(logits, self.cap)
        if attn_mask is not None:
            # never -inf: scores are within the cap, so this is enough, and
            # the lowest number, less the cap, is still the lowest number
            logits = logits + as_additive(attn_mask, logits)
        probs = torch.softmax(logits, dim=-1)

        encoded = torch.einsum("BKGTS,BSKE->BTKGE", probs, value_proj)
        return encoded.flatten(2, 3)


PATIENT = GroupedQueryCore(attn_logits_soft_cap=20.0)
FACTS = {
    "layout": "BNHD",
    "mask": "keep",
    "mask_axes": "BNN",
    "names": {
        "q": "query_proj",
        "k": "key_proj",
        "v": "value_proj",
        "mask": "attn_mask",
    },
    "empty_row": "average",
    "grouped": True,
    "cap": 20.0,
    "dtypes": ("float64", "float32", "bfloat16"),
}
INPUTS = {
    "query_proj": "b n 2*g d",
    "key_proj": "b m g d",
    "value_proj": "b m g e",
    "attn_mask?": "keep b n m",
}
OTHER_INPUTS = [
    {
        "query_proj": "b n h d",
        "key_proj": "b m h d",
        "value_proj": "b m h e",
        "attn_mask?": "keep b n m",
    },
]
