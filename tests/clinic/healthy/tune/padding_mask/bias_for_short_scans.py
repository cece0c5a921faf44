"""For scans of many depths: a bias for bmm, written into buffers."""

import torch


def depth_bias(depths, max_depth, fill=float("-inf"), dtype=None, flat=False):
    """Zeros for slices that a scan has; (scans, 1, max_depth)."""
    depths = torch.as_tensor(depths)
    shape = (depths.shape[0], 1, max_depth)
    slices = torch.arange(max_depth, device=depths.device)
    missing = torch.empty(shape, dtype=torch.bool, device=depths.device)
    torch.ge(slices, depths[:, None, None], out=missing)
    bias = torch.zeros(shape, dtype=dtype or torch.float32)
    bias = bias.to(depths.device).masked_fill_(missing, fill)
    return bias.squeeze(1) if flat else bias


PATIENT = depth_bias
FACTS = {
    "mask": "add",
    "axes": "B1N",
    "of": "lengths",
    "arguments": 2,
    "dtypes": ("float32",),
}
INPUTS = {"depths": "lengths b n", "max_depth": "int n"}
