"""BERT's way: numbers of positions in a buffer, unless some are given."""

from types import SimpleNamespace

import torch
from torch import nn


class Embeddings(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.position_embeddings = nn.Embedding(
            config.max_position_embeddings, config.hidden_size
        )
        self.dropout = nn.Dropout(config.hidden_dropout_prob)
        self.register_buffer(
            "position_ids",
            torch.arange(config.max_position_embeddings).expand((1, -1)),
            persistent=False,
        )

    def forward(
        self,
        inputs_embeds=None,
        position_ids=None,
        past_key_values_length=0,
    ):
        seq_length = inputs_embeds.size()[:-1][1]
        if position_ids is None:
            stop = seq_length + past_key_values_length
            position_ids = self.position_ids[:, past_key_values_length:stop]
        embeddings = inputs_embeds
        embeddings = embeddings + self.position_embeddings(position_ids)
        return self.dropout(embeddings)


PATIENT = Embeddings(
    SimpleNamespace(
        max_position_embeddings=20,
        hidden_size=7,
        hidden_dropout_prob=0.1,
    )
)
FACTS = {
    "table": PATIENT.position_embeddings.weight.detach(),
    "layout": "BND",
    "dropout": 0.1,
    "dtypes": ("float64", "float32"),
}
INPUTS = {"inputs_embeds": "b n 7"}
SIZES = {"n": (1, 20)}
