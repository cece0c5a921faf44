"""BERT's way: ones become zeros, zeros the least number there is."""

import torch


def get_extended_attention_mask(
    input_ids, pad_token_id=0, dtype=torch.float32
):
    attention_mask = input_ids.ne(pad_token_id)
    extended = attention_mask[:, None, None, :].to(dtype=dtype)
    return (1.0 - extended) * torch.finfo(dtype).min


PATIENT = get_extended_attention_mask
FACTS = {"mask": "add", "axes": "B11N", "of": "tokens", "arguments": 2}
INPUTS = {"input_ids": "ids b n", "pad_token_id": "int 0"}
