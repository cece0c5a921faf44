"""A decoder's parameter: where to begin is what the cache tells."""

import torch
from torch import Tensor, nn


class DecoderPositions(nn.Module):
    def __init__(self, n_ctx: int, n_state: int):
        super().__init__()
        self.n_ctx = n_ctx
        self.positional_embedding = nn.Parameter(torch.empty(n_ctx, n_state))
        nn.init.normal_(self.positional_embedding, std=0.3)

    def past(self, kv_cache: dict[str, Tensor] | None) -> int:
        """How many tokens have been decoded: (batch, past, n_state)."""
        if not kv_cache:
            return 0
        return next(iter(kv_cache.values())).shape[1]

    def forward(
        self, x: Tensor, kv_cache: dict[str, Tensor] | None = None
    ) -> Tensor:
        offset, n = self.past(kv_cache), x.shape[-2]
        assert offset + n <= self.n_ctx, "the context is full"
        rows = self.positional_embedding[offset : offset + n]
        return x + rows.to(x.dtype)


PATIENT = DecoderPositions(24, 8)
FACTS = {"table": PATIENT.positional_embedding.detach(), "layout": "BND"}
INPUTS = {"x": "b n 8"}
SIZES = {"n": (1, 24)}
