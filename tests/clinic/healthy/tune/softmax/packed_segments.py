"""What is real is packed in one long row, and each segment summed up."""

import torch


def ragged_softmax(logits, sizes):
    """logits is (texts, queries, keys); of each text `sizes` keys are real."""
    keys = torch.arange(logits.size(-1), device=logits.device)
    real = (keys < sizes.view(-1, 1, 1)).expand_as(logits)
    packed = logits[real]
    rows = real.flatten(0, 1).sum(-1)
    segment = torch.repeat_interleave(rows)
    top = packed.new_full((len(rows),), -torch.inf)
    top = top.scatter_reduce(0, segment, packed.detach(), "amax")
    e = (packed - top[segment]).exp()
    total = torch.zeros_like(top).index_add(0, segment, e)
    out = torch.zeros_like(logits)
    return out.masked_scatter(real, e / total[segment])


PATIENT = ragged_softmax
FACTS = {
    "mask": "lengths",
    "empty_row": "zeros",
    "dtypes": ("float64", "float32"),
}
INPUTS = {"logits": "b n m", "sizes": "lengths b m"}
LOUDEST = 1000
