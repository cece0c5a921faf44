"""For diffusing videos: a function, its options fixed, with addcmul inside."""

from functools import partial

import torch


def norm_channels(clip, gain, shift, *, eps, keep_dtype):
    """Any axes before the channels; narrow types are widened inside."""
    wide = torch.promote_types(clip.dtype, torch.float32)
    centred = clip.to(wide)
    centred = torch.sub(centred, centred.mean(dim=-1, keepdim=True))
    power = torch.linalg.vecdot(centred, centred) / clip.size(-1)
    rate = (power + eps).rsqrt().unsqueeze(-1)
    out = torch.addcmul(shift.to(wide), centred * rate, gain.to(wide))
    return out.to(clip.dtype) if keep_dtype else out


PATIENT = partial(norm_channels, eps=1e-6, keep_dtype=True)
FACTS = {
    "eps": 1e-6,
    "precision": "exact",
    "dtypes": ("float64", "float32", "bfloat16", "float16"),
}
INPUTS = {"clip": "b h n d", "gain": "d", "shift": "d"}
OTHER_INPUTS = [{"clip": "n d", "gain": "d", "shift": "d"}]
