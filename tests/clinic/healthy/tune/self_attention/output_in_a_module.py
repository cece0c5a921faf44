"""Scores in one module, the last map in another, a configuration for all."""

import math
from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class Config:
    hidden_size: int = 15
    num_attention_heads: int = 5
    attention_probs_dropout_prob: float = 0.1
    hidden_dropout_prob: float = 0.1


class SelfAttention(nn.Module):
    def __init__(self, config: Config):
        super().__init__()
        if config.hidden_size % config.num_attention_heads != 0:
            raise ValueError(
                f"The hidden size ({config.hidden_size}) is no multiple of "
                f"the number of heads ({config.num_attention_heads})"
            )
        self.num_attention_heads = config.num_attention_heads
        self.attention_head_size = (
            config.hidden_size // config.num_attention_heads
        )
        self.all_head_size = (
            self.num_attention_heads * self.attention_head_size
        )
        self.query = nn.Linear(config.hidden_size, self.all_head_size)
        self.key = nn.Linear(config.hidden_size, self.all_head_size)
        self.value = nn.Linear(config.hidden_size, self.all_head_size)
        self.dropout = nn.Dropout(config.attention_probs_dropout_prob)

    def transpose_for_scores(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, _ = x.size()
        new_x_shape = (
            batch,
            length,
            self.num_attention_heads,
            self.attention_head_size,
        )
        return x.view(*new_x_shape).permute(0, 2, 1, 3)

    def forward(self, hidden_states, attention_mask=None):
        query_layer = self.transpose_for_scores(self.query(hidden_states))
        key_layer = self.transpose_for_scores(self.key(hidden_states))
        value_layer = self.transpose_for_scores(self.value(hidden_states))

        attention_scores = torch.matmul(
            query_layer, key_layer.transpose(-1, -2)
        )
        attention_scores = attention_scores / math.sqrt(
            self.attention_head_size
        )
        if attention_mask is not None:
            # made once for all layers: 0 for words, -inf for padding
            attention_scores = attention_scores + attention_mask
        attention_probs = nn.Softmax(dim=-1)(attention_scores)
        dropped = self.dropout(attention_probs)

        context_layer = torch.matmul(dropped, value_layer)
        context_layer = context_layer.permute(0, 2, 1, 3).contiguous()
        new_shape = (*context_layer.size()[:-2], self.all_head_size)
        return context_layer.view(new_shape), attention_probs


class SelfOutput(nn.Module):
    def __init__(self, config: Config):
        super().__init__()
        self.dense = nn.Linear(config.hidden_size, config.hidden_size)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def forward(self, hidden_states):
        return self.dropout(self.dense(hidden_states))


class Attention(nn.Module):
    def __init__(self, config: Config):
        super().__init__()
        self.self = SelfAttention(config)
        self.output = SelfOutput(config)

    def forward(self, hidden_states, attention_mask=None):
        context, probs = self.self(hidden_states, attention_mask)
        return (self.output(context), probs)


PATIENT = Attention(Config())
FACTS = {
    "layout": "BND",
    "causal": False,
    "mask": "add",
    "mask_axes": "B11N",
    "empty_row": "nan",
    "n_heads": 5,
    "projections": {
        "q": "self.query",
        "k": "self.key",
        "v": "self.value",
        "out": "output.dense",
    },
    "dropout": 0.1,
}
INPUTS = {"hidden_states": "b n 15", "attention_mask?": "add b 1 1 n"}
