"""Of a translation toolkit: time first, norms before, told its causal mask."""

from torch import Tensor, nn


class DecoderLayer(nn.Module):
    def __init__(self, embed_dim=12, heads=2, ffn_embed_dim=18, dropout=0.1):
        super().__init__()
        self.dropout_module = nn.Dropout(dropout)
        self.self_attn = nn.MultiheadAttention(embed_dim, heads, dropout)
        self.self_attn_layer_norm = nn.LayerNorm(embed_dim)
        self.encoder_attn = nn.MultiheadAttention(
            embed_dim, heads, dropout, kdim=10, vdim=10
        )
        self.encoder_attn_layer_norm = nn.LayerNorm(embed_dim)
        self.ffn = nn.Sequential(
            nn.Linear(embed_dim, ffn_embed_dim),
            nn.ReLU(),
            nn.Linear(ffn_embed_dim, embed_dim),
        )
        self.final_layer_norm = nn.LayerNorm(embed_dim)

    def residual_connection(self, x: Tensor, residual: Tensor) -> Tensor:
        return residual + self.dropout_module(x)

    def forward(
        self,
        x: Tensor,
        encoder_out: Tensor,
        encoder_padding_mask: Tensor | None = None,
        self_attn_mask: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        residual = x
        x = self.self_attn_layer_norm(x)
        x, _ = self.self_attn(
            x, x, x, attn_mask=self_attn_mask, need_weights=False
        )
        residual = x = self.residual_connection(x, residual)
        x, attn = self.encoder_attn(
            self.encoder_attn_layer_norm(x),
            encoder_out,
            encoder_out,
            key_padding_mask=encoder_padding_mask,
        )
        residual = x = self.residual_connection(x, residual)
        x = self.ffn(self.final_layer_norm(x))
        return self.residual_connection(x, residual), attn


PATIENT = DecoderLayer().eval()
FACTS = {
    "layout": "NBD",
    "order": "pre",
    "self_attention": "self_attn",
    "cross_attention": "encoder_attn",
    "own_mask": "self_attn_mask",
    "norms": (
        "self_attn_layer_norm",
        "encoder_attn_layer_norm",
        "final_layer_norm",
    ),
    "feed_forward": "ffn",
    "padding": "block",
    "names": {"context": "encoder_out", "padding": "encoder_padding_mask"},
    "dropout": 0.1,
    "dtypes": ("float64", "float32", "bfloat16"),
}
INPUTS = {
    "x": "n b 12",
    "encoder_out": "m b 10",
    "encoder_padding_mask?": "padding b m",
    "self_attn_mask": "future n n",
}
