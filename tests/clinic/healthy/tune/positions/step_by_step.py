"""Time first: a step of the sequence after another gets its own vector."""

import torch

MAX_STEPS, FEATURES = 14, 5
STEP_VECTORS = [
    [((3 * t + 7 * f) % 11 - 5) / 4 for f in range(FEATURES)]
    for t in range(MAX_STEPS)
]


def with_step_vectors(seq, vectors=STEP_VECTORS):
    """seq: (steps, batch, features)."""
    if len(seq) > len(vectors):
        raise IndexError("more steps than vectors")
    out = seq.clone()
    for t, vector in zip(range(seq.shape[0]), vectors, strict=False):
        out[t] += seq.new_tensor(vector)
    return out


PATIENT = with_step_vectors
FACTS = {"table": torch.tensor(STEP_VECTORS), "layout": "NBD"}
INPUTS = {"seq": "n b 5"}
SIZES = {"n": (1, 14)}
