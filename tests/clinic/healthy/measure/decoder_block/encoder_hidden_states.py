"""Speech to text, by a large library's words; the masks are to be added."""

import torch
from torch import nn
from torch.nn import functional


class SpeechAttention(nn.Module):
    """Keys come without a bias: it would change no weight."""

    def __init__(self, embed_dim: int, num_heads: int):
        super().__init__()
        head_dim, left_over = divmod(embed_dim, num_heads)
        if left_over:
            raise ValueError(f"{num_heads} heads do not divide {embed_dim}")
        self.heads_first = (num_heads, head_dim)
        self.scaling = head_dim**-0.5
        self.q_proj = nn.Linear(embed_dim, embed_dim)
        self.k_proj = nn.Linear(embed_dim, embed_dim, bias=False)
        self.v_proj = nn.Linear(embed_dim, embed_dim)
        self.out_proj = nn.Linear(embed_dim, embed_dim)

    def forward(
        self, hidden_states, key_value_states=None, attention_mask=None
    ):
        states = hidden_states
        if key_value_states is not None:
            states = key_value_states
        query, key, value = (
            projected.unflatten(-1, self.heads_first).transpose(1, 2)
            for projected in (
                self.q_proj(hidden_states) * self.scaling,
                self.k_proj(states),
                self.v_proj(states),
            )
        )
        attn_weights = torch.matmul(query, key.transpose(-1, -2))
        if attention_mask is not None:
            attn_weights = attn_weights + attention_mask
        attn_weights = functional.softmax(attn_weights, dim=-1)
        attn_output = torch.matmul(attn_weights, value)
        attn_output = attn_output.transpose(1, 2).flatten(start_dim=2)
        return self.out_proj(attn_output), attn_weights


class SpeechDecoderLayer(nn.Module):
    def __init__(self, d_model, attention_heads, ffn_dim, dropout=0.1):
        super().__init__()
        self.dropout = dropout
        self.self_attn_layer_norm = nn.LayerNorm(d_model)
        self.self_attn = SpeechAttention(d_model, attention_heads)
        self.encoder_attn_layer_norm = nn.LayerNorm(d_model)
        self.encoder_attn = SpeechAttention(d_model, attention_heads)
        self.final_layer_norm = nn.LayerNorm(d_model)
        self.fc1 = nn.Linear(d_model, ffn_dim)
        self.fc2 = nn.Linear(ffn_dim, d_model)

    def dropped(self, states):
        return functional.dropout(states, self.dropout, self.training)

    def forward(
        self,
        hidden_states,
        attention_mask=None,
        encoder_hidden_states=None,
        encoder_attention_mask=None,
        output_attentions=False,
    ):
        weights = ()
        residual = hidden_states
        hidden_states = self.self_attn_layer_norm(hidden_states)
        hidden_states, attn_weights = self.self_attn(
            hidden_states, attention_mask=attention_mask
        )
        hidden_states = residual + self.dropped(hidden_states)
        weights += (attn_weights,)

        if encoder_hidden_states is not None:
            residual = hidden_states
            hidden_states = self.encoder_attn_layer_norm(hidden_states)
            hidden_states, attn_weights = self.encoder_attn(
                hidden_states,
                key_value_states=encoder_hidden_states,
                attention_mask=encoder_attention_mask,
            )
            hidden_states = residual + self.dropped(hidden_states)
            weights += (attn_weights,)

        residual = hidden_states
        hidden_states = self.final_layer_norm(hidden_states)
        hidden_states = functional.gelu(self.fc1(hidden_states))
        hidden_states = self.fc2(hidden_states)
        hidden_states = residual + self.dropped(hidden_states)
        return (hidden_states, *(weights if output_attentions else ()))


PATIENT = SpeechDecoderLayer(12, 2, 18)
FACTS = {
    "order": "pre",
    "layout": "BND",
    "mask": "add",
    "own_mask": "attention_mask",
    "self_attention": "self_attn",
    "cross_attention": "encoder_attn",
    "flat_feed_forward": ("fc1", "gelu", "fc2"),
    "norms": [
        "self_attn_layer_norm",
        "encoder_attn_layer_norm",
        "final_layer_norm",
    ],
    "n_heads": 2,
    "dropout": 0.1,
}
INPUTS = {
    "hidden_states": "b n 12",
    "attention_mask": "add b 1 n n",
    "encoder_hidden_states": "b m 12",
    "encoder_attention_mask?": "add b 1 1 m",
}
