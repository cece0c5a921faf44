"""A kernel writer's reference: online maximum and sum, tile after tile."""

import math

import torch


def tiles(extent: int, width: int):
    start = 0
    while start < extent:
        yield start, min(width, extent - start)
        start += width


def online_softmax(logits, blocked=None, axis=-1, tile=3):
    """Two passes: one for the statistics, and one that writes.

    blocked: True where a logit must not count; a row of nothing else is NaN.
    """
    if blocked is not None:
        logits = torch.where(blocked, -math.inf, logits)
    rows = logits.movedim(axis, 0)
    extent = rows.size(0)

    running = torch.full_like(rows[0], -math.inf)
    total = torch.zeros_like(rows[0])
    for start, width in tiles(extent, tile):
        piece = rows.narrow(0, start, width)
        peak = torch.maximum(running, piece.amax(dim=0).detach())
        # as long as nothing was seen, the peak is no number to subtract
        base = torch.where(peak == -math.inf, torch.zeros_like(peak), peak)
        total = total * (running - base).exp() + (piece - base).exp().sum(0)
        running = peak

    base = torch.where(running == -math.inf, 0.0, running)
    written = [
        (rows.narrow(0, start, width) - base).exp() / total
        for start, width in tiles(extent, tile)
    ]
    return torch.cat(written).movedim(0, axis)


PATIENT = online_softmax
FACTS = {
    "mask": "block",
    "names": {"mask": "blocked"},
    "axis": "axis",
    "empty_row": "nan",
    "dtypes": ("float64", "float32"),
}
INPUTS = {"logits": "b n m", "blocked?": "block b n m"}
OTHER_INPUTS = [
    {"logits": "n m", "blocked": "block n m", "axis?": "int -1"},
    {"logits": "b h n m", "blocked?": "block b h n m"},
]
