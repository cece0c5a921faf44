"""Written for TorchScript: out-arguments, slices, products in place."""

import torch
from torch import Tensor


def _angles(length: int, dim: int, start: int, like: Tensor) -> Tensor:
    idx = torch.arange(dim // 2, device=like.device, dtype=torch.float64)
    freq = torch.exp2(idx * (-2.0 / dim) * 13.287712379549449)  # log2(10000)
    pos = torch.arange(length, device=like.device, dtype=torch.float64)
    return (pos + start).unsqueeze(1) * freq.unsqueeze(0)


def rotary_(buf: Tensor, src: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    half: int = src.size(-1) // 2
    lo = src.narrow(-1, 0, half)
    hi = src.narrow(-1, half, half)
    buf.narrow(-1, 0, half).mul_(cos).sub_(hi * sin)
    buf.narrow(-1, half, half).mul_(cos).add_(lo * sin)
    return buf


def rotary_forward(src: Tensor, kv_cache_len: int = 0) -> Tensor:
    """Of (batch * heads, length, dim), or of more axes in front."""
    ang = _angles(src.size(-2), src.size(-1), kv_cache_len, src)
    cos = ang.cos().to(src.dtype)
    sin = ang.sin().to(src.dtype)
    return rotary_(src.clone(), src, cos, sin)


PATIENT = rotary_forward
FACTS = {"pairs": "halves"}
INPUTS = {"src": "b n 2*d", "kv_cache_len": "int s"}
OTHER_INPUTS = [{"src": "b h n 2*d", "kv_cache_len": "int s"}]
SIZES = {"s": (0, 9)}
