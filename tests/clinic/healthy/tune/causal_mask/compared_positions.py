"""Positions are compared; the last query sits on the last key."""

import torch


def make_causal_mask(q_len, kv_len):
    rows = torch.arange(q_len) + (kv_len - q_len)
    columns = torch.arange(kv_len)
    return columns.unsqueeze(0) <= rows.unsqueeze(1)


PATIENT = make_causal_mask
FACTS = {"mask": "keep", "alignment": "last", "arguments": 2}
INPUTS = {"q_len": "int n", "kv_len": "int n+3"}
OTHER_INPUTS = [{"q_len": "int n", "kv_len": "int n"}]
