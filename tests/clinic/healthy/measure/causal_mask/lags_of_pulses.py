"""From radar: the lag of each pulse behind each gate, and a step of it."""

import torch


def reachable(pulses, gates, device=None):
    """True where an echo has come back by the time of a pulse."""
    fired = torch.arange(gates - pulses, gates, device=device)
    back = torch.arange(gates, device=device)
    if (lag := torch.sub(fired.unsqueeze(1), back)).numel() == 0:
        return lag.bool()
    step = torch.where(lag > 0, 1, torch.where(lag == 0, 1, 0))
    return step.to(torch.bool)


PATIENT = reachable
FACTS = {
    "mask": "keep",
    "alignment": "last",
    "arguments": 2,
    "dtypes": ("float64", "float32", "bfloat16", "float16"),
}
INPUTS = {"pulses": "int n", "gates": "int m"}
