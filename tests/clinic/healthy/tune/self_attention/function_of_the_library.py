"""Own maps, handed to the function behind the library's own layer."""

import torch
import torch.nn.functional as F
from torch import nn


class TokenMixer(nn.Module):
    def __init__(self, width: int, heads: int, attn_drop: float = 0.0):
        super().__init__()
        self.width, self.heads = width, heads
        self.attn_drop = attn_drop
        self.k_proj = nn.Linear(width, width)
        self.q_proj = nn.Linear(width, width)
        self.v_proj = nn.Linear(width, width)
        self.c_proj = nn.Linear(width, width)

    def forward(self, x: torch.Tensor, src_key_padding_mask=None):
        """LND, as everywhere in this model; weights come back averaged."""
        return F.multi_head_attention_forward(
            query=x,
            key=x,
            value=x,
            embed_dim_to_check=self.width,
            num_heads=self.heads,
            q_proj_weight=self.q_proj.weight,
            k_proj_weight=self.k_proj.weight,
            v_proj_weight=self.v_proj.weight,
            in_proj_weight=None,
            in_proj_bias=torch.cat(
                [self.q_proj.bias, self.k_proj.bias, self.v_proj.bias]
            ),
            bias_k=None,
            bias_v=None,
            add_zero_attn=False,
            dropout_p=self.attn_drop,
            out_proj_weight=self.c_proj.weight,
            out_proj_bias=self.c_proj.bias,
            use_separate_proj_weight=True,
            training=self.training,
            key_padding_mask=src_key_padding_mask,
            need_weights=True,
        )


PATIENT = TokenMixer(12, 4, attn_drop=0.1)
FACTS = {
    "layout": "NBD",
    "causal": False,
    "padding": "block",
    "n_heads": 4,
    "projections": {
        "q": "q_proj",
        "k": "k_proj",
        "v": "v_proj",
        "out": "c_proj",
    },
    "dropout": 0.1,
}
INPUTS = {"x": "n b 12", "src_key_padding_mask?": "padding b n"}
