"""The library's layer in a wrapper that keeps tokens behind the batch."""

import torch
from torch import Tensor, nn


class SelfAttentionLayer(nn.Module):
    def __init__(self, hidden_size: int, nhead: int, dropout: float = 0.0):
        super().__init__()
        self.multihead_attn = nn.MultiheadAttention(
            hidden_size, nhead, dropout=dropout, batch_first=False
        )
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        for p in self.parameters():
            if p.dim() > 1:
                nn.init.xavier_uniform_(p)

    def forward(self, inputs: Tensor, lengths: Tensor | None = None) -> Tensor:
        inputs = inputs.permute(1, 0, 2)
        padding = None
        if lengths is not None:
            steps = torch.arange(inputs.size(0), device=inputs.device)
            padding = steps.unsqueeze(0) >= lengths.unsqueeze(1)
        outputs, _ = self.multihead_attn(
            query=inputs,
            key=inputs,
            value=inputs,
            key_padding_mask=padding,
            need_weights=True,
        )
        return outputs.permute(1, 0, 2)


PATIENT = SelfAttentionLayer(12, 4, dropout=0.2)
FACTS = {
    "layout": "BND",
    "causal": False,
    "mask": "lengths",
    "packed": "by part",
    "n_heads": 4,
    "dropout": 0.2,
}
INPUTS = {"inputs": "b n 12", "lengths?": "lengths b n"}
