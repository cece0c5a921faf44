"""A predicate of two indices, spread over a grid by vmap."""

import torch


def causal_mod(offset):
    def mask_mod(q_idx, kv_idx):
        return q_idx + offset >= kv_idx

    return mask_mod


def materialise(Q_LEN, KV_LEN):
    mod = causal_mod(KV_LEN - Q_LEN)
    over_keys = torch.vmap(mod, in_dims=(None, 0))
    over_both = torch.vmap(over_keys, in_dims=(0, None))
    return over_both(torch.arange(Q_LEN), torch.arange(KV_LEN))


PATIENT = materialise
FACTS = {"mask": "keep", "alignment": "last", "arguments": 2}
INPUTS = {"Q_LEN": "int n", "KV_LEN": "int n+3"}
OTHER_INPUTS = [{"Q_LEN": "int n", "KV_LEN": "int n"}]
