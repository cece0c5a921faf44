"""A notebook on fine-tuning: a float for each number, list after list."""

import torch


def create_attention_masks(input_ids):
    attention_masks = []
    for sent in input_ids:
        # 1.0 for a word, 0.0 for [PAD]
        att_mask = [float(token_id > 0) for token_id in sent]
        attention_masks.append(att_mask)
    return torch.tensor(attention_masks)


PATIENT = create_attention_masks
FACTS = {"mask": "ones", "axes": "BN", "of": "tokens", "arguments": 1}
INPUTS = {"input_ids": "ids b n"}
