"""Views of two axes are expanded and compared; True is what to ignore."""

import torch


def lengths_to_padding_mask(lens, max_lens):
    bsz = lens.size(0)
    mask = torch.arange(max_lens).to(lens.device).view(1, max_lens)
    mask = mask.expand(bsz, -1) >= lens.view(bsz, 1).expand(-1, max_lens)
    return mask


PATIENT = lengths_to_padding_mask
FACTS = {"mask": "block", "axes": "BN", "of": "lengths", "arguments": 2}
INPUTS = {"lens": "lengths b n", "max_lens": "int n"}
