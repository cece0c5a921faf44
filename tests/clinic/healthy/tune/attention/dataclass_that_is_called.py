"""Options in a frozen dataclass, which is the function as well."""

from __future__ import annotations

import dataclasses
import math

import torch
from torch import Tensor


@dataclasses.dataclass(frozen=True)
class Attend:
    """Scaled dot-product attention, time before batch.

    Attributes:
        inverse_temperature: beside 1/√d, a factor for all scores.
        blank: what a score becomes that shall not count.
    """

    inverse_temperature: float = 1.0
    blank: float = -math.inf

    def scores(self, q: Tensor, k: Tensor) -> Tensor:
        factor = self.inverse_temperature * q.shape[-1] ** -0.5
        return torch.einsum("ibd,jbd->bij", q, k) * factor

    def __call__(
        self, q: Tensor, k: Tensor, v: Tensor, *, mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Output (N, B, D) and weights (B, N, M); True in mask is blank."""
        scores = self.scores(q, k)
        if mask is not None:
            scores = scores.masked_fill(mask, self.blank)
        weights = scores.softmax(dim=2)
        return torch.einsum("bij,jbd->ibd", weights, v), weights


PATIENT = Attend()
FACTS = {
    "layout": "NBD",
    "mask": "block",
    "mask_axes": "BNN",
    "empty_row": "nan",
}
INPUTS = {"q": "n b d", "k": "m b d", "v": "m b e", "mask?": "block b n m"}
