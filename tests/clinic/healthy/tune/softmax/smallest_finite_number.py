"""Typed: hidden scores get the least number there is, then log-softmax."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import BoolTensor, Tensor, nn


class MaskedSoftmax(nn.Module):
    """Probabilities over the last axis.

    ``attention_mask`` is True where a key takes part. A row without any gets
    the same probability everywhere.
    """

    def forward(
        self,
        attention_scores: Tensor,
        attention_mask: BoolTensor | None = None,
    ) -> Tensor:
        if attention_mask is not None:
            lowest = torch.finfo(attention_scores.dtype).min
            attention_scores = torch.where(
                attention_mask,
                attention_scores,
                attention_scores.new_tensor(lowest),
            )
        return F.log_softmax(attention_scores, dim=-1).exp()


PATIENT = MaskedSoftmax()
FACTS = {"mask": "keep", "empty_row": "average"}
INPUTS = {"attention_scores": "b n m", "attention_mask?": "keep b n m"}
