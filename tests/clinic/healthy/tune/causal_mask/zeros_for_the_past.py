"""To be added: the least number ahead, with columns of zeros for the past."""

import torch


def make_causal_mask(tgt_len, src_len, dtype=torch.float32, device=None):
    mask = torch.full((tgt_len, tgt_len), torch.finfo(dtype).min)
    mask_cond = torch.arange(mask.size(-1))
    mask.masked_fill_(mask_cond < (mask_cond + 1).view(-1, 1), 0)
    mask = mask.to(dtype)
    past_len = src_len - tgt_len
    if past_len > 0:
        past = torch.zeros(tgt_len, past_len, dtype=dtype)
        mask = torch.cat([past, mask], dim=-1)
    return mask.to(device)


PATIENT = make_causal_mask
FACTS = {"mask": "add", "alignment": "last", "arguments": 2}
INPUTS = {"tgt_len": "int n", "src_len": "int n+3"}
OTHER_INPUTS = [{"tgt_len": "int n", "src_len": "int n"}]
