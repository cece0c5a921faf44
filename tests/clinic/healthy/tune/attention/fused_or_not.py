"""An image model's core: the fused function, or the same by hand."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class AttentionCore(nn.Module):
    """What lies between the projections of a transformer for images."""

    fused_attn: bool

    def __init__(
        self,
        dim: int,
        num_heads: int,
        attn_drop: float = 0.0,
        fused_attn: bool = False,
    ) -> None:
        super().__init__()
        if dim % num_heads:
            raise ValueError(f"{dim} features for {num_heads} heads")
        self.scale = (dim // num_heads) ** -0.5
        self.fused_attn = fused_attn
        self.attn_drop = nn.Dropout(attn_drop)

    def by_hand(self, q, k, v, attn_mask):
        attn = (q * self.scale) @ k.transpose(-2, -1)
        if attn_mask is not None:
            attn = attn + attn_mask
        attn = attn.softmax(dim=-1)
        attn = self.attn_drop(attn)
        return attn @ v

    def forward(
        self,
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        attn_mask: torch.Tensor | None = None,
    ) -> torch.Tensor:
        if not self.fused_attn:
            return self.by_hand(q, k, v, attn_mask)
        p = self.attn_drop.p if self.training else 0.0
        return F.scaled_dot_product_attention(
            q, k, v, attn_mask=attn_mask, dropout_p=p, scale=self.scale
        )


PATIENT = AttentionCore(dim=24, num_heads=3, attn_drop=0.1).eval()
FACTS = {
    "layout": "BHND",
    "scale": 8**-0.5,
    "mask": "add",
    "mask_axes": "NN",
    "empty_row": "nan",
    "dropout": 0.1,
}
INPUTS = {
    "q": "b h n d",
    "k": "b h m d",
    "v": "b h m d",
    "attn_mask?": "add n m",
}
SIZES = {"h": (3, 3), "d": (8, 8)}
