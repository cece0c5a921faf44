"""With a temperature by keyword; the sum is an einsum's."""

import torch


def softmax_with_temperature(logits, *, temperature=1.0):
    if temperature <= 0:
        raise ValueError("the temperature has to be positive")
    z = logits / temperature
    z = z.sub(z.detach().max(dim=-1, keepdim=True).values).exp()
    norm = torch.einsum("...k->...", z)
    return torch.einsum("...k,...->...k", z, norm.pow(-1))


PATIENT = softmax_with_temperature
FACTS = {"empty_row": "nan"}
INPUTS = {"logits": "b n m"}
LOUDEST = 1000
