"""Tokens other than the padding, with axes for heads and queries."""


def make_src_mask(src, pad_idx):
    return (src != pad_idx).unsqueeze(1).unsqueeze(2)


PATIENT = make_src_mask
FACTS = {"mask": "keep", "axes": "B11N", "of": "tokens", "arguments": 2}
INPUTS = {"src": "ids b n", "pad_idx": "int 0"}
