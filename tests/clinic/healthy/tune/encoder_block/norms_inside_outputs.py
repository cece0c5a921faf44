"""Each sublayer ends in a module that adds its input and norms the sum."""

import math

import torch
from torch import nn


class SelfAttention(nn.Module):
    def __init__(self, hidden, heads):
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(hidden, hidden)
        self.key = nn.Linear(hidden, hidden)
        self.value = nn.Linear(hidden, hidden)

    def transpose_for_scores(self, x):
        x = x.view(x.size(0), x.size(1), self.heads, -1)
        return x.permute(0, 2, 1, 3)

    def forward(self, hidden_states, attention_mask=None):
        q = self.transpose_for_scores(self.query(hidden_states))
        k = self.transpose_for_scores(self.key(hidden_states))
        v = self.transpose_for_scores(self.value(hidden_states))
        scores = torch.matmul(q, k.transpose(-1, -2))
        scores = scores / math.sqrt(q.size(-1))
        if attention_mask is not None:
            scores = scores + attention_mask
        probs = nn.functional.softmax(scores, dim=-1)
        context = torch.matmul(probs, v).permute(0, 2, 1, 3)
        return context.flatten(2)


class Output(nn.Module):
    def __init__(self, width_in, width_out, dropout):
        super().__init__()
        self.dense = nn.Linear(width_in, width_out)
        self.LayerNorm = nn.LayerNorm(width_out, eps=1e-12)
        self.dropout = nn.Dropout(dropout)

    def forward(self, hidden_states, input_tensor):
        hidden_states = self.dropout(self.dense(hidden_states))
        return self.LayerNorm(hidden_states + input_tensor)


class Attention(nn.Module):
    def __init__(self, hidden, heads, dropout):
        super().__init__()
        self.self = SelfAttention(hidden, heads)
        self.output = Output(hidden, hidden, dropout)

    def forward(self, input_tensor, attention_mask=None):
        self_output = self.self(input_tensor, attention_mask)
        return self.output(self_output, input_tensor)


class Intermediate(nn.Module):
    def __init__(self, hidden, inner):
        super().__init__()
        self.dense = nn.Linear(hidden, inner)
        self.intermediate_act_fn = nn.functional.gelu

    def forward(self, hidden_states):
        return self.intermediate_act_fn(self.dense(hidden_states))


class Layer(nn.Module):
    def __init__(self, hidden, heads, inner, dropout=0.1):
        super().__init__()
        self.attention = Attention(hidden, heads, dropout)
        self.intermediate = Intermediate(hidden, inner)
        self.output = Output(inner, hidden, dropout)

    def forward(self, hidden_states, attention_mask=None):
        attention_output = self.attention(hidden_states, attention_mask)
        intermediate_output = self.intermediate(attention_output)
        return self.output(intermediate_output, attention_output)


PATIENT = Layer(12, 4, 21)
FACTS = {
    "order": "post",
    "mask": "add",
    "mask_axes": "B11N",
    "layout": "BND",
    "norms": ["attention.output.LayerNorm", "output.LayerNorm"],
    "n_heads": 4,
    "dropout": 0.1,
    "dtypes": ("float64", "float32", "bfloat16"),
}
INPUTS = {
    "hidden_states": "b n 12",
    "attention_mask?": "add b 1 1 n",
}
