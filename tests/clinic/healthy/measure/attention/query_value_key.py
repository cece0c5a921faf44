"""A layer as Keras has it: query, value, key in this order, and no scale."""

import torch
from torch import nn


class DotAttention(nn.Module):
    """Luong's attention: query is (batch, Tq, dim), value (batch, Tv, dim).

    Without a key, value is its own key. `value_mask` is (batch, Tv), and
    False where there is nothing.
    """

    def __init__(self, dropout=0.0, return_attention_scores=False):
        super().__init__()
        self.dropout = nn.Dropout(dropout)
        self.return_attention_scores = return_attention_scores

    def calculate_scores(self, query, key):
        return torch.einsum("bqd,bvd->bqv", query, key)

    def calculate_mask(self, scores, value_mask, use_causal_mask):
        """What may be seen, or None if that is everything."""
        masks = []
        if value_mask is not None:
            masks.append(value_mask[:, None, :])
        if use_causal_mask:
            ones = torch.ones_like(scores[:1], dtype=torch.int32)
            rows, columns = ones.cumsum(dim=-2), ones.cumsum(dim=-1)
            masks.append(rows >= columns)
        if not masks:
            return None
        return masks[0] if len(masks) == 1 else torch.logical_and(*masks)

    def apply_scores(self, scores, value, mask):
        if mask is not None:
            hidden = torch.logical_not(mask).to(scores.dtype)
            much = 65504.0 if scores.dtype == torch.float16 else 1e9
            scores = scores - much * hidden
        weights = self.dropout(torch.softmax(scores, dim=-1))
        return torch.matmul(weights, value), weights

    def forward(
        self, query, value, key=None, value_mask=None, use_causal_mask=False
    ):
        scores = self.calculate_scores(query, value if key is None else key)
        mask = self.calculate_mask(scores, value_mask, use_causal_mask)
        result, weights = self.apply_scores(scores, value, mask)
        return (result, weights) if self.return_attention_scores else result


PATIENT = DotAttention()
FACTS = {
    "layout": "BND",
    "scale": 1.0,
    "mask": "keep",
    "mask_axes": "BN",
    "names": {"mask": "value_mask"},
    "alignment": "first",
    "dtypes": ("float64", "float32", "bfloat16"),
}
INPUTS = {
    "query": "b n d",
    "key": "b m d",
    "value": "b m e",
    "value_mask?": "real b m",
}
OTHER_INPUTS = [
    {
        "query": "b n d",
        "key": "b n d",
        "value": "b n e",
        "value_mask?": "real b n",
        "use_causal_mask": "true",
    }
]
