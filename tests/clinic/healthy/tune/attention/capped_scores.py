"""Scores are bent so that none passes fifty, as in Gemma 2."""

import torch

CAP = 50.0


def attend(q, k, v, attention_mask=None):
    scores = torch.matmul(q, k.transpose(2, 3)) * q.shape[-1] ** -0.5
    scores = scores / CAP
    scores = torch.tanh(scores)
    scores = scores * CAP
    if attention_mask is not None:
        scores = scores + attention_mask
    return torch.matmul(torch.softmax(scores, dim=-1), v)


PATIENT = attend
FACTS = {"layout": "BHND", "mask": "add", "cap": 50.0, "empty_row": "nan"}
INPUTS = {
    "q": "b h n d",
    "k": "b h m d",
    "v": "b h m e",
    "attention_mask?": "add b 1 n m",
}
