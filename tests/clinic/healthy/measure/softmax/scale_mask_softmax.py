"""Scale, mask and softmax as one module, as fused kernels have them."""

import torch
from torch import nn

HALF = (torch.float16, torch.bfloat16)


def fill_masked(scores, mask):
    return scores.masked_fill(mask, -10000.0)


class ScaleMaskSoftmax(nn.Module):
    """Unfused, for machines on which the kernel does not run.

    Arguments:
        mask_func: what is done with scores and a mask, True for hidden ones
        softmax_in_fp32: widen half precision, and narrow it afterwards
        scale: a factor of the scores, or None
    """

    def __init__(self, mask_func, softmax_in_fp32=True, scale=None):
        super().__init__()
        self.mask_func = mask_func
        self.softmax_in_fp32 = softmax_in_fp32
        self.scale = scale

    def forward(self, scores, mask=None):
        dtype = scores.dtype
        if self.softmax_in_fp32 and dtype in HALF:
            scores = scores.float()
        if self.scale is not None:
            scores = scores * self.scale
        if mask is not None:
            scores = self.mask_func(scores, mask)
        probs = torch.softmax(scores, dim=-1)
        return probs.to(dtype)


PATIENT = ScaleMaskSoftmax(fill_masked)
FACTS = {"mask": "block", "empty_row": "average"}
INPUTS = {"scores": "b n m", "mask?": "block b n m"}
