"""No scale; a number learnt for each distance and head is added."""

import torch
from torch import nn


class RelativeAttention(nn.Module):
    def __init__(self, d_model, d_kv, num_heads, max_distance=4):
        super().__init__()
        self.n_heads = num_heads
        self.key_value_proj_dim = d_kv
        self.inner_dim = num_heads * d_kv
        self.max_distance = max_distance
        # the scale is in the initial numbers
        self.q = nn.Linear(d_model, self.inner_dim, bias=False)
        self.k = nn.Linear(d_model, self.inner_dim, bias=False)
        self.v = nn.Linear(d_model, self.inner_dim, bias=False)
        self.o = nn.Linear(self.inner_dim, d_model, bias=False)
        nn.init.normal_(self.q.weight, std=(d_model * d_kv) ** -0.5)
        self.relative_attention_bias = nn.Embedding(
            2 * max_distance + 1, num_heads
        )

    def compute_bias(self, qlen, klen):
        device = self.relative_attention_bias.weight.device
        context = torch.arange(qlen, device=device)[:, None]
        memory = torch.arange(klen, device=device)[None, :]
        far = self.max_distance
        bucket = (memory - context).clamp(-far, far) + far
        values = self.relative_attention_bias(bucket)  # (qlen, klen, heads)
        return values.permute(2, 0, 1).unsqueeze(0)

    def forward(self, hidden_states, mask=None):
        bs, seq_len, _ = hidden_states.shape

        def shape(states):
            return states.view(
                bs, -1, self.n_heads, self.key_value_proj_dim
            ).transpose(1, 2)

        q = shape(self.q(hidden_states))
        k = shape(self.k(hidden_states))
        v = shape(self.v(hidden_states))
        scores = torch.matmul(q, k.transpose(3, 2))
        scores += self.compute_bias(seq_len, seq_len)
        if mask is not None:
            scores = scores.masked_fill(
                mask[:, None, None] == 0, torch.finfo(scores.dtype).min
            )
        weights = nn.functional.softmax(scores.float(), dim=-1)
        weights = weights.type_as(scores)
        out = torch.matmul(weights, v).transpose(1, 2).contiguous()
        return self.o(out.view(bs, -1, self.inner_dim))


PATIENT = RelativeAttention(12, 5, 3)
FACTS = {
    "layout": "BND",
    "causal": False,
    "formula": "own",
    "scale": 1.0,
    "padding": "keep",
    "empty_row": "average",
    "n_heads": 3,
    "positions": "relative",
    "precision": "float32",
    "dtypes": ("float32", "bfloat16"),
}
INPUTS = {"hidden_states": "b n 12", "mask?": "real b n"}
