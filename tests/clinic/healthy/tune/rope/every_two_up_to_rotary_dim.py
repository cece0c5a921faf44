"""GPT-J's way: every two features, up to a rotary width; sines come first."""

import torch


def fixed_pos_embedding(dim, seq_len, offset, dtype):
    inv_freq = 1.0 / (10000 ** (torch.arange(0, dim, 2).to(dtype) / dim))
    steps = torch.arange(offset, offset + seq_len).to(dtype)
    sinusoid_inp = torch.einsum("i,j->ij", steps, inv_freq)
    return torch.sin(sinusoid_inp), torch.cos(sinusoid_inp)


def rotate_every_two(x):
    rotated = torch.empty_like(x)
    rotated[..., ::2] = -x[..., 1::2]
    rotated[..., 1::2] = x[..., ::2]
    return rotated


def apply_rotary_pos_emb(x, sincos):
    sin, cos = (t.repeat_interleave(2, dim=1)[None, :, None] for t in sincos)
    return (x * cos) + (rotate_every_two(x) * sin)


def rotate_queries_or_keys(tensor, offset=0, rotary_dim=4):
    x_rot = tensor[:, :, :, :rotary_dim]
    x_pass = tensor[:, :, :, rotary_dim:]
    sincos = fixed_pos_embedding(
        rotary_dim, tensor.shape[1], offset, tensor.dtype
    )
    return torch.cat([apply_rotary_pos_emb(x_rot, sincos), x_pass], dim=-1)


PATIENT = rotate_queries_or_keys
FACTS = {
    "pairs": "neighbours",
    "layout": "BNHD",
    "width": 16,
    "part": 0.25,
    "dtypes": ("float64", "float32"),
}
INPUTS = {"tensor": "b n h 16", "offset": "int s"}
SIZES = {"s": (0, 9)}
