"""An object that is told the number of the padding; axis one is new."""

from dataclasses import dataclass

import torch


@dataclass
class Masker:
    pad: int = 0
    on_device: str | None = None

    def __call__(self, src: torch.Tensor) -> torch.Tensor:
        src_mask = torch.ne(src, self.pad).unsqueeze(-2)
        return (
            src_mask if self.on_device is None else src_mask.to(self.on_device)
        )


PATIENT = Masker()
FACTS = {"mask": "keep", "axes": "B1N", "of": "tokens", "arguments": 1}
INPUTS = {"src": "ids b n"}
