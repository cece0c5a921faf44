"""A module counts tokens in a buffer; one more axis, for the queries."""

from typing import Annotated

import torch
from torch import Tensor, nn

Lengths = Annotated[Tensor, "batch"]


class PadMask(nn.Module):
    counter: Tensor

    def __init__(self, longest: int = 128) -> None:
        super().__init__()
        self.register_buffer("counter", torch.arange(1, longest + 1))

    @torch.no_grad()
    def forward(self, lens: Lengths, width: int) -> Tensor:
        """True at padding, (batch, 1, width), to be used with `bmm`."""
        counter = self.counter.narrow(0, 0, width)
        return torch.gt(counter, lens.view(-1, 1, 1))


PATIENT = PadMask()
FACTS = {
    "mask": "block",
    "axes": "B1N",
    "of": "lengths",
    "arguments": 2,
    "longest": 128,
}
INPUTS = {"lens": "lengths b n", "width": "int n"}
