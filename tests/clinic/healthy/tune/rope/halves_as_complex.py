"""Complex numbers whose imaginary parts are the other half."""

import torch

HEAD_DIM = 10
MAX_SEQ_LEN = 96


def freqs_cis_table(dim: int, end: int, theta: float = 10000.0):
    freqs = 1.0 / (theta ** (torch.arange(0, dim, 2).float() / dim))
    angles = torch.outer(torch.arange(end).float(), freqs)
    return torch.polar(torch.ones_like(angles), angles)  # complex64


def as_complex(x: torch.Tensor) -> torch.Tensor:
    real, imag = torch.chunk(x.float(), 2, dim=-1)
    return torch.complex(real, imag)


def as_halves(z: torch.Tensor) -> torch.Tensor:
    return torch.cat((z.real, z.imag), dim=-1)


FREQS_CIS = freqs_cis_table(HEAD_DIM, MAX_SEQ_LEN)


def rope(xq: torch.Tensor, input_pos: int = 0) -> torch.Tensor:
    """xq is [batch_size, input_len, n_local_heads, head_dim]."""
    input_len = xq.shape[1]
    freqs_cis = FREQS_CIS[input_pos : input_pos + input_len].to(xq.device)
    rotated = as_complex(xq) * freqs_cis[None, :, None, :]
    return as_halves(rotated).type_as(xq)


PATIENT = rope
FACTS = {
    "pairs": "halves",
    "layout": "BNHD",
    "width": 10,
    "longest": 96,
    "precision": "float32",
    "dtypes": ("float32", "bfloat16"),
}
INPUTS = {"xq": "b n h 10", "input_pos": "int s"}
SIZES = {"s": (0, 9)}
