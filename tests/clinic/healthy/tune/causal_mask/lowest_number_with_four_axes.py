"""A mask to be added, with axes for texts and heads; lowest, not infinite."""

import torch


def prepare_4d_causal_mask(
    query_length: int,
    key_value_length: int,
    dtype: torch.dtype = torch.float32,
    device: torch.device | str = "cpu",
) -> torch.Tensor:
    min_dtype = torch.finfo(dtype).min
    cache_position = torch.arange(
        key_value_length - query_length, key_value_length, device=device
    )
    mask = torch.full(
        (query_length, key_value_length), min_dtype, dtype=dtype, device=device
    )
    places = torch.arange(key_value_length, device=device)
    mask *= places > cache_position.reshape(-1, 1)
    return mask[None, None, :, :]


PATIENT = prepare_4d_causal_mask
FACTS = {"mask": "add", "alignment": "last", "arguments": 2}
INPUTS = {"query_length": "int n", "key_value_length": "int n+3"}
OTHER_INPUTS = [{"query_length": "int n", "key_value_length": "int n"}]
