"""Speech synthesis: ones and zeros with an axis for the channels."""

import torch
from torch import Tensor


def sequence_mask(length: Tensor, max_length: int | None = None) -> Tensor:
    if max_length is None:
        max_length = int(length.max())
    frames = torch.arange(max_length).to(length)
    return frames[None, :] < length[:, None]


def x_mask(x_lengths: Tensor, x_size: int) -> Tensor:
    """(batch, 1, time), to be multiplied with what has channels."""
    mask = sequence_mask(x_lengths, x_size).unsqueeze(1)
    return mask.to(torch.get_default_dtype())


PATIENT = x_mask
FACTS = {"mask": "ones", "axes": "B1N", "of": "lengths", "arguments": 2}
INPUTS = {"x_lengths": "lengths b n", "x_size": "int n"}
