"""An adapter to PyTorch's function, as model libraries have one."""

import torch
import torch.nn.functional as F


def sdpa_forward(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None = None,
    *,
    dropout: float = 0.0,
    scaling: float | None = None,
    is_causal: bool = False,
    **unused,
) -> tuple[torch.Tensor, None]:
    """Heads before tokens go in, tokens before heads come out.

    Weights are never made, so there are none to return.
    """
    if attention_mask is not None:
        # it may have been made for the whole cache
        attention_mask = attention_mask[..., : key.size(-2)]
        is_causal = False  # a mask knows already who comes before whom

    attn_output = F.scaled_dot_product_attention(
        query,
        key,
        value,
        attn_mask=attention_mask,
        dropout_p=dropout,
        is_causal=is_causal,
        scale=scaling,
        enable_gqa=key.size(1) < query.size(1),
    )
    return attn_output.transpose(1, 2).contiguous(), None


PATIENT = sdpa_forward
FACTS = {
    "layout": "BHND to BNHD",
    "grouped": True,
    "mask": "keep",
    "mask_axes": "B1NN",
    "alignment": "first",
    "empty_row": "zeros",
    "dropout": "dropout",
}
INPUTS = {
    "query": "b 2*g n d",
    "key": "b g m d",
    "value": "b g m e",
    "attention_mask?": "keep b 1 n m",
}
OTHER_INPUTS = [
    {
        "query": "b 2*g n d",
        "key": "b g n d",
        "value": "b g n e",
        "is_causal": "true",
    }
]
