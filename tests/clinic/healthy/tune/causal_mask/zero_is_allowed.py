"""Whole numbers, 1 for what is forbidden, kept by size once they are made."""

import torch


class MaskBook(dict):
    """A mask for each size, made when it is first asked for."""

    def __missing__(self, size):
        steps = torch.arange(size)
        future = steps.sub(steps.unsqueeze(1)).clamp(min=0, max=1)
        self[size] = future.to(torch.uint8)
        return self[size]

    def __call__(self, size):
        return self[size].clone()


PATIENT = MaskBook()
FACTS = {"mask": "zeros", "alignment": "last", "arguments": 1}
INPUTS = {"size": "int n"}
