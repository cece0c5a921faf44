"""As image models have it: one parameter with an axis of one, then dropout."""

import torch
from torch import nn


class AddPositionEmbs(nn.Module):
    """Adds learnt positions to [batch_size, num_patches, hidden_size]."""

    def __init__(self, num_patches: int, hidden_size: int, rate: float = 0.0):
        super().__init__()
        self.pos_embedding = nn.Parameter(
            torch.empty(1, num_patches, hidden_size)
        )
        nn.init.trunc_normal_(self.pos_embedding, std=0.2)
        self.dropout = nn.Dropout(rate)

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        if inputs.ndim != 3:
            raise ValueError(f"expected three axes, got {inputs.ndim}")
        embs = self.pos_embedding[:, : inputs.shape[1], :]
        return self.dropout(inputs + embs)


PATIENT = AddPositionEmbs(17, 8, rate=0.1)
FACTS = {
    "table": PATIENT.pos_embedding.detach()[0],
    "layout": "BND",
    "dropout": 0.1,
    "dtypes": ("float64", "float32"),
}
INPUTS = {"inputs": "b n 8"}
SIZES = {"n": (1, 17)}
