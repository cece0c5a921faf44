"""A layer with a mechanism inside, beside the same on PyTorch's kernel."""

import copy

from selfattn import MultiHeadAttention, attention, fused_attention
from tools.measure.bench.race import HEADS, D


def of_layers(attend, name: str, form, n: int):
    """Our layer and the same on the fused kernel; and their definitions."""
    usual = MultiHeadAttention(HEADS * D, HEADS, attend=fused_attention)
    exact, full = (copy.deepcopy(usual).double() for _ in range(2))
    exact.attend, full.attend = form, attention
    fair = {"sdpa layer": full, name: exact}
    ours = MultiHeadAttention(HEADS * D, HEADS, attend=attend)
    ours.load_state_dict(usual.state_dict(), strict=False)
    race = {name: ours}
    if n != 16384:  # there it is left out, to save time
        race = {"sdpa layer": usual} | race
    return race, fair
