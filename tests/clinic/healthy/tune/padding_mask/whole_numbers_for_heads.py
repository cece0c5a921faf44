"""From a notebook: 1 for a word, 0 for the filling, an axis for the heads."""

import torch

VOCAB = {"<pad>": 0, "<unk>": 1}


def attention_mask(tokens):
    filled = torch.full_like(tokens, VOCAB["<pad>"])
    mask = torch.where(torch.eq(tokens, filled), 0, 1)
    batch_size, seq_len = mask.shape
    return mask.view(batch_size, 1, 1, seq_len)


PATIENT = attention_mask
FACTS = {"mask": "ones", "axes": "B11N", "of": "tokens", "arguments": 1}
INPUTS = {"tokens": "ids b n"}
