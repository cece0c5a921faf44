"""NumPy's words: axis and keepdims, and halves are widened first."""

import torch


def softmax(z, axis=-1):
    z = torch.as_tensor(z)
    out_type = z.dtype
    if out_type in {torch.float16, torch.bfloat16}:
        z = z.to(torch.float32)
    z_max = torch.amax(z, dim=axis, keepdim=True)
    numerator = torch.exp(torch.subtract(z, z_max))
    denominator = torch.sum(numerator, axis=axis, keepdims=True)
    return torch.divide(numerator, denominator).to(out_type)


PATIENT = softmax
FACTS = {"axis": "axis", "empty_row": "nan"}
INPUTS = {"z": "b n m", "axis": "int -1"}
LOUDEST = 1000
