"""As in picture models: channels stand before the flattened pixels."""

import torch


def spatial_attention(q, k, v):
    """All are (batch, heads, channels, pixels)."""
    channels = q.shape[2]
    sim = torch.einsum("bhci,bhcj->bhij", q * channels**-0.5, k)
    sim = sim - sim.amax(dim=-1, keepdim=True).detach()
    attn = sim.softmax(dim=-1)
    return torch.einsum("bhij,bhcj->bhci", attn, v)


PATIENT = spatial_attention
FACTS = {"layout": "BHDN"}
INPUTS = {"q": "b h d n", "k": "b h d m", "v": "b h e m"}
