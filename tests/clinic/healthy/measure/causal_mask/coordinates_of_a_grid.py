"""A grid of coordinates; with a cache, queries start behind its end."""

import torch


class CausalMask:
    """Boolean, True for pairs that take part in attention."""

    def __init__(self, device: str = "cpu") -> None:
        self.device = torch.device(device)

    def __call__(self, seqlen_q: int, seqlen_k: int) -> torch.Tensor:
        if seqlen_q > seqlen_k:
            raise ValueError(f"{seqlen_q} queries for {seqlen_k} keys")
        offset = seqlen_k - seqlen_q
        i, j = torch.meshgrid(
            torch.arange(seqlen_q, device=self.device) + offset,
            torch.arange(seqlen_k, device=self.device),
            indexing="ij",
        )
        return i >= j


PATIENT = CausalMask()
FACTS = {"mask": "keep", "alignment": "last", "arguments": 2}
INPUTS = {"seqlen_q": "int n", "seqlen_k": "int n+3"}
OTHER_INPUTS = [{"seqlen_q": "int n", "seqlen_k": "int n"}]
