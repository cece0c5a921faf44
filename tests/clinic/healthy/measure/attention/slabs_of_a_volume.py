"""For volumes of a scanner: voxels last, slab by slab, and a temperature."""

import torch
from torch import nn


class VoxelAttention(nn.Module):
    def __init__(
        self,
        temperature=2.0,
        slab=4,
        p_drop=0.0,
        normalise_by_width=False,
        check_shapes=True,
        contiguous=True,
        inside=None,
    ):
        super().__init__()
        self.tau, self.slab = temperature, slab
        self.drop = nn.Dropout(p_drop)
        self.by_width, self.check = normalise_by_width, check_shapes
        self.contiguous, self.inside = contiguous, inside

    def slabs(self, query, value, key, roi):
        n_channels, n_voxels = query.shape[1:]
        tau = self.tau * (n_channels**0.5 if self.by_width else 1.0)
        for start in range(0, n_voxels, self.slab):
            stop = min(start + self.slab, n_voxels)
            s = torch.bmm(query[:, :, start:stop].transpose(1, 2), key) / tau
            if roi is not None:
                outside = roi[:, start:stop].logical_not()
                s = s.masked_fill(outside, torch.finfo(s.dtype).min)
            w = self.drop(s.softmax(2))
            yield torch.bmm(value, w.transpose(1, 2))

    def forward(self, query, value, key, roi=None):
        """(scans, channels, voxels); roi (scans, voxels, voxels): look."""
        if self.check and key.shape[2] != value.shape[2]:
            raise ValueError("each voxel needs a key and a value")
        given = query.dtype
        if self.inside is not None:
            query, value, key = (
                t.to(self.inside) for t in (query, value, key)
            )
        out = torch.cat([*self.slabs(query, value, key, roi)], dim=2)
        out = out.to(given)
        return out.contiguous() if self.contiguous else out


PATIENT = VoxelAttention()
FACTS = {
    "layout": "BDN",
    "causal": False,
    "mask": "keep",
    "mask_axes": "BNN",
    "empty_row": "average",
    "names": {"q": "query", "k": "key", "v": "value", "mask": "roi"},
    "scale": 0.5,
    "dtypes": ("float64", "float32", "bfloat16"),
}
INPUTS = {
    "query": "b d n",
    "key": "b d m",
    "value": "b e m",
    "roi?": "keep b n m",
}
