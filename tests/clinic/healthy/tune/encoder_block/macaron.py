"""Half a network, attention, half a network, and a norm at the end."""

import torch
import torch.nn.functional as F
from torch import nn


class FeedForwardModule(nn.Module):
    def __init__(self, encoder_dim, expansion_factor=2, dropout_p=0.1):
        super().__init__()
        self.sequential = nn.Sequential(
            nn.LayerNorm(encoder_dim),
            nn.Linear(encoder_dim, encoder_dim * expansion_factor),
            nn.SiLU(),
            nn.Dropout(p=dropout_p),
            nn.Linear(encoder_dim * expansion_factor, encoder_dim),
            nn.Dropout(p=dropout_p),
        )

    def forward(self, inputs):
        return self.sequential(inputs)


class MultiHeadedSelfAttentionModule(nn.Module):
    def __init__(self, d_model, num_heads, dropout_p=0.1):
        super().__init__()
        self.num_heads = num_heads
        self.layer_norm = nn.LayerNorm(d_model)
        self.query_proj = nn.Linear(d_model, d_model)
        self.key_proj = nn.Linear(d_model, d_model)
        self.value_proj = nn.Linear(d_model, d_model)
        self.out_proj = nn.Linear(d_model, d_model)
        self.dropout = nn.Dropout(p=dropout_p)

    def forward(self, inputs, mask=None):
        x = self.layer_norm(inputs)
        b, n, d = x.shape
        shape = b, n, self.num_heads, d // self.num_heads
        q = self.query_proj(x).view(shape).transpose(1, 2)
        k = self.key_proj(x).view(shape).permute(0, 2, 3, 1)
        v = self.value_proj(x).view(shape).transpose(1, 2)
        score = torch.matmul(q, k) / shape[-1] ** 0.5
        if mask is not None:
            score = score.masked_fill(mask[:, None, None], -torch.inf)
        context = torch.matmul(F.softmax(score, -1), v).transpose(1, 2)
        return self.dropout(self.out_proj(context.reshape(b, n, d)))


class MacaronBlock(nn.Module):
    def __init__(self, encoder_dim, num_heads, half_step_residual=True):
        super().__init__()
        self.factor = 0.5 if half_step_residual else 1.0
        self.ff1 = FeedForwardModule(encoder_dim)
        self.attn = MultiHeadedSelfAttentionModule(encoder_dim, num_heads)
        self.ff2 = FeedForwardModule(encoder_dim)
        self.norm = nn.LayerNorm(encoder_dim)

    def forward(self, x, mask=None):
        x = x + self.factor * self.ff1(x)
        x = x + self.attn(x, mask)
        x = x + self.factor * self.ff2(x)
        return self.norm(x)


PATIENT = MacaronBlock(12, 3)
FACTS = {
    "formula": "own",
    "layout": "BND",
    "padding": "block",
    "empty_row": "nan",
    "n_heads": 3,
    "dropout": 0.1,
}
INPUTS = {"x": "b n 12", "mask?": "padding b n"}
