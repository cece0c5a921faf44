"""A prompt of words and one of a picture, each with a softmax of its own."""

import torch.nn.functional as F
from torch import nn


class DecoupledCrossAttention(nn.Module):
    r"""
    Cross-attention to the text, and to image tokens with other maps.

    Args:
        query_dim (`int`): channels of the latents.
        text_dim (`int`): channels of the text encoder.
        image_dim (`int`): channels of the image tokens.
        heads (`int`): number of heads.
        ip_scale (`float`, *optional*, defaults to 1.0): weight of the image.
    """

    def __init__(self, query_dim, text_dim, image_dim, heads, ip_scale=1.0):
        super().__init__()
        self.heads = heads
        self.ip_scale = ip_scale
        self.to_q = nn.Linear(query_dim, query_dim, bias=False)
        self.to_k = nn.Linear(text_dim, query_dim, bias=False)
        self.to_v = nn.Linear(text_dim, query_dim, bias=False)
        self.to_k_ip = nn.Linear(image_dim, query_dim, bias=False)
        self.to_v_ip = nn.Linear(image_dim, query_dim, bias=False)
        self.to_out = nn.ModuleList(
            [nn.Linear(query_dim, query_dim), nn.Dropout(0.0)]
        )

    def forward(
        self,
        hidden_states,
        encoder_hidden_states,
        ip_hidden_states=None,
        attention_mask=None,
    ):
        batch_size, _, inner_dim = hidden_states.shape
        head_dim = inner_dim // self.heads

        def split(t):
            t = t.view(batch_size, -1, self.heads, head_dim)
            return t.transpose(1, 2)

        def merge(t):
            return t.transpose(1, 2).reshape(batch_size, -1, inner_dim)

        query = split(self.to_q(hidden_states))
        key = split(self.to_k(encoder_hidden_states))
        value = split(self.to_v(encoder_hidden_states))
        hidden_states = F.scaled_dot_product_attention(
            query, key, value, attn_mask=attention_mask
        )
        hidden_states = merge(hidden_states)

        if ip_hidden_states is not None:
            ip_key = split(self.to_k_ip(ip_hidden_states))
            ip_value = split(self.to_v_ip(ip_hidden_states))
            scores = query @ ip_key.transpose(-1, -2) / head_dim**0.5
            ip_out = merge(scores.softmax(dim=-1) @ ip_value)
            hidden_states = hidden_states + self.ip_scale * ip_out

        # linear proj
        hidden_states = self.to_out[0](hidden_states)
        # dropout
        return self.to_out[1](hidden_states)


PATIENT = DecoupledCrossAttention(12, 7, 5, heads=3, ip_scale=0.6)
FACTS = {
    "layout": "BND",
    "causal": False,
    "formula": "own",
    "mask": "keep",
    "mask_axes": "B1NN",
    "n_heads": 3,
    "projections": {
        "q": "to_q",
        "k": "to_k",
        "v": "to_v",
        "out": "to_out.0",
    },
}
INPUTS = {
    "hidden_states": "b n 12",
    "encoder_hidden_states": "b m 7",
    "ip_hidden_states?": "b g 5",
    "attention_mask?": "keep b 1 n m",
}
