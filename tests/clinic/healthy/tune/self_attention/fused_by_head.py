"""One matrix that holds q, k and v of a head before those of the next."""

import torch
from torch import nn


class FusedAttention(nn.Module):
    def __init__(self, hidden, heads):
        super().__init__()
        self.heads = heads
        self.query_key_value = nn.Linear(hidden, 3 * hidden)
        self.dense = nn.Linear(hidden, hidden)

    def forward(self, hidden_states, attention_mask=None):
        b, n, c = hidden_states.shape
        fused = self.query_key_value(hidden_states)
        fused = fused.view(b, n, self.heads, 3 * (c // self.heads))
        q, k, v = fused.permute(0, 2, 1, 3).chunk(3, dim=-1)
        scores = torch.matmul(q, k.transpose(-1, -2)) / q.size(-1) ** 0.5
        if attention_mask is not None:
            scores = scores + attention_mask
        context = torch.matmul(scores.softmax(dim=-1), v)
        context = context.permute(0, 2, 1, 3).reshape(b, n, c)
        return self.dense(context)


PATIENT = FusedAttention(12, 2)
FACTS = {
    "layout": "BND",
    "causal": False,
    "mask": "add",
    "mask_axes": "B1NN",
    "empty_row": "nan",
    "packed": "by head",
    "n_heads": 2,
}
INPUTS = {"hidden_states": "b n 12", "attention_mask?": "add b 1 n n"}
