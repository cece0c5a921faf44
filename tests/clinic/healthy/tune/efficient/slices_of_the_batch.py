"""Pictures on small cards: a few heads of a few texts at a time."""

import torch


class SlicedAttention:
    """Heads are a part of the batch, of which `slice_size` are done at once.

    Less memory is used, and a little more time.
    """

    def __init__(self, slice_size=2):
        if slice_size < 1:
            raise ValueError("slice_size must be positive")
        self.slice_size = slice_size

    def attention_probs(self, query, key, attention_mask=None):
        scale = query.shape[-1] ** -0.5
        if attention_mask is None:
            scores = torch.bmm(query * scale, key.transpose(-1, -2))
        else:
            scores = torch.baddbmm(
                attention_mask, query, key.transpose(-1, -2), alpha=scale
            )
        return scores.softmax(dim=-1)

    def __call__(self, query, key, value, attention_mask=None):
        batch_heads, query_tokens, _ = query.shape
        hidden_states = value.new_zeros(
            batch_heads, query_tokens, value.shape[-1]
        )
        for start_idx in range(0, batch_heads, self.slice_size):
            here = slice(start_idx, start_idx + self.slice_size)
            mask = None if attention_mask is None else attention_mask[here]
            attn_slice = self.attention_probs(query[here], key[here], mask)
            hidden_states[here] = torch.bmm(attn_slice, value[here])
        return hidden_states


PATIENT = SlicedAttention()
FACTS = {
    "layout": "BND",
    "mask": "add",
    "mask_axes": "BNN",
    "empty_row": "nan",
}
INPUTS = {
    "query": "b n d",
    "key": "b m d",
    "value": "b m e",
    "attention_mask?": "add b n m",
}
SIZES = {"b": (1, 5)}
