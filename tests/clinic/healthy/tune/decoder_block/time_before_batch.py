"""Time first; norms before or behind by an option; the network lies flat."""

import torch
import torch.nn.functional as F
from torch import nn


class MultiheadAttention(nn.Module):
    def __init__(self, embed_dim, num_heads, kdim=None):
        super().__init__()
        kdim = embed_dim if kdim is None else kdim
        self.embed_dim, self.num_heads = embed_dim, num_heads
        self.head_dim = embed_dim // num_heads
        self.scaling = self.head_dim**-0.5
        self.k_proj = nn.Linear(kdim, embed_dim)
        self.v_proj = nn.Linear(kdim, embed_dim)
        self.q_proj = nn.Linear(embed_dim, embed_dim)
        self.out_proj = nn.Linear(embed_dim, embed_dim)

    def forward(
        self, query, key, value, key_padding_mask=None, attn_mask=None
    ):
        tgt_len, bsz, embed_dim = query.size()
        src_len = key.size(0)
        q = self.q_proj(query) * self.scaling
        rows = bsz * self.num_heads
        q = q.reshape(tgt_len, rows, self.head_dim).transpose(0, 1)
        k = self.k_proj(key).reshape(src_len, rows, self.head_dim)
        v = self.v_proj(value).reshape(src_len, rows, self.head_dim)
        k, v = k.transpose(0, 1), v.transpose(0, 1)

        attn_weights = torch.bmm(q, k.transpose(1, 2))
        if attn_mask is not None:
            attn_weights = attn_weights + attn_mask.unsqueeze(0)
        if key_padding_mask is not None:
            attn_weights = attn_weights.view(
                bsz, self.num_heads, tgt_len, src_len
            ).masked_fill(key_padding_mask[:, None, None], float("-inf"))
            attn_weights = attn_weights.view(rows, tgt_len, src_len)
        attn = torch.bmm(F.softmax(attn_weights, dim=-1), v)
        attn = attn.transpose(0, 1).reshape(tgt_len, bsz, embed_dim)
        return self.out_proj(attn), attn_weights


class TransformerDecoderLayer(nn.Module):
    def __init__(
        self, embed_dim, ffn_dim, heads, encoder_dim, normalize_before=False
    ):
        super().__init__()
        self.normalize_before = normalize_before
        self.self_attn = MultiheadAttention(embed_dim, heads)
        self.self_attn_layer_norm = nn.LayerNorm(embed_dim)
        self.encoder_attn = MultiheadAttention(
            embed_dim, heads, kdim=encoder_dim
        )
        self.encoder_attn_layer_norm = nn.LayerNorm(embed_dim)
        self.fc1 = nn.Linear(embed_dim, ffn_dim)
        self.fc2 = nn.Linear(ffn_dim, embed_dim)
        self.final_layer_norm = nn.LayerNorm(embed_dim)

    def maybe_norm(self, norm, x, before):
        return norm(x) if before == self.normalize_before else x

    def forward(self, x, encoder_out, encoder_padding_mask=None):
        future = torch.full((x.size(0), x.size(0)), float("-inf"))
        future = future.triu(1).to(x)

        residual = x
        x = self.maybe_norm(self.self_attn_layer_norm, x, before=True)
        x, _ = self.self_attn(x, x, x, attn_mask=future)
        x = residual + x
        x = self.maybe_norm(self.self_attn_layer_norm, x, before=False)

        residual = x
        x = self.maybe_norm(self.encoder_attn_layer_norm, x, before=True)
        x, _ = self.encoder_attn(
            x, encoder_out, encoder_out, key_padding_mask=encoder_padding_mask
        )
        x = residual + x
        x = self.maybe_norm(self.encoder_attn_layer_norm, x, before=False)

        residual = x
        x = self.maybe_norm(self.final_layer_norm, x, before=True)
        x = self.fc2(F.relu(self.fc1(x)))
        x = residual + x
        return self.maybe_norm(self.final_layer_norm, x, before=False)


PATIENT = TransformerDecoderLayer(12, 17, 3, encoder_dim=8)
FACTS = {
    "order": "post",
    "padding": "block",
    "layout": "NBD",
    "self_attention": "self_attn",
    "cross_attention": "encoder_attn",
    "flat_feed_forward": ("fc1", "relu", "fc2"),
    "norms": [
        "self_attn_layer_norm",
        "encoder_attn_layer_norm",
        "final_layer_norm",
    ],
}
INPUTS = {
    "x": "n b 12",
    "encoder_out": "m b 8",
    "encoder_padding_mask?": "padding b m",
}
