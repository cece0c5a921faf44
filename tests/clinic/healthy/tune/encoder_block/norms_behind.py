"""The original: norms behind the sums, PyTorch's attention inside."""

from torch import nn


class TransformerBlock(nn.Module):
    def __init__(self, embed_dim, num_heads, ff_dim):
        super().__init__()
        self.att = nn.MultiheadAttention(
            embed_dim, num_heads, batch_first=True
        )
        self.ffn = nn.Sequential(
            nn.Linear(embed_dim, ff_dim),
            nn.ReLU(),
            nn.Linear(ff_dim, embed_dim),
        )
        self.layernorm1 = nn.LayerNorm(embed_dim)
        self.layernorm2 = nn.LayerNorm(embed_dim)

    def forward(self, inputs, attn_mask=None):
        attn_output, _ = self.att(inputs, inputs, inputs, attn_mask=attn_mask)
        out1 = self.layernorm1(inputs + attn_output)
        ffn_output = self.ffn(out1)
        return self.layernorm2(out1 + ffn_output)


PATIENT = TransformerBlock(12, 2, 17)
FACTS = {"order": "post", "mask": "block", "layout": "BND"}
INPUTS = {"inputs": "b n 12", "attn_mask?": "block n n"}
