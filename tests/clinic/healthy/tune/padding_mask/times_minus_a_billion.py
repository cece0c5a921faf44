"""A translated tutorial: ones where zeros are, times a negative number."""

import torch

NEG = -1e9


def create_padding_mask(seq, dtype=torch.float32):
    seq = torch.eq(seq, 0).to(dtype)

    # add extra dimensions to add the padding to the attention logits
    return (seq * NEG)[:, None, None, :]  # (batch_size, 1, 1, seq_len)


PATIENT = create_padding_mask
FACTS = {"mask": "add", "axes": "B11N", "of": "tokens", "arguments": 1}
INPUTS = {"seq": "ids b n"}
