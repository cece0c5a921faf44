"""A list of three layers, each with its own norm and its own sum."""

import torch
from torch import nn


class LayerNorm(nn.Module):
    """No shift, and no mean is taken off."""

    def __init__(self, hidden_size, eps=1e-6):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden_size))
        self.variance_epsilon = eps

    def forward(self, hidden_states):
        variance = hidden_states.pow(2).mean(-1, keepdim=True)
        scaled = torch.rsqrt(variance + self.variance_epsilon)
        return self.weight * (hidden_states * scaled)


class Attention(nn.Module):
    def __init__(self, d_model, d_kv, num_heads, is_decoder):
        super().__init__()
        self.n_heads, self.d_kv = num_heads, d_kv
        self.is_decoder = is_decoder
        self.q = nn.Linear(d_model, num_heads * d_kv, bias=False)
        self.k = nn.Linear(d_model, num_heads * d_kv, bias=False)
        self.v = nn.Linear(d_model, num_heads * d_kv, bias=False)
        self.o = nn.Linear(num_heads * d_kv, d_model, bias=False)

    def forward(self, hidden_states, key_value_states=None):
        states = (
            hidden_states if key_value_states is None else key_value_states
        )
        b, n, _ = hidden_states.shape
        m = states.shape[1]
        q = self.q(hidden_states).view(b, n, self.n_heads, self.d_kv)
        k = self.k(states).view(b, m, self.n_heads, self.d_kv)
        v = self.v(states).view(b, m, self.n_heads, self.d_kv)
        # the maps were initialised for scores that need no scale
        scores = torch.einsum("bnhd,bmhd->bhnm", q, k)
        if self.is_decoder and key_value_states is None:
            past = torch.ones(n, m, device=scores.device).tril().bool()
            scores = scores.where(past, torch.finfo(scores.dtype).min)
        weights = scores.softmax(dim=-1)
        out = torch.einsum("bhnm,bmhd->bnhd", weights, v)
        return self.o(out.reshape(b, n, -1))


class LayerSelfAttention(nn.Module):
    def __init__(self, d_model, d_kv, heads, rate):
        super().__init__()
        self.SelfAttention = Attention(d_model, d_kv, heads, is_decoder=True)
        self.layer_norm = LayerNorm(d_model)
        self.dropout = nn.Dropout(rate)

    def forward(self, hidden_states):
        normed_hidden_states = self.layer_norm(hidden_states)
        y = self.SelfAttention(normed_hidden_states)
        return hidden_states + self.dropout(y)


class LayerCrossAttention(nn.Module):
    def __init__(self, d_model, d_kv, heads, rate):
        super().__init__()
        self.EncDecAttention = Attention(d_model, d_kv, heads, is_decoder=True)
        self.layer_norm = LayerNorm(d_model)
        self.dropout = nn.Dropout(rate)

    def forward(self, hidden_states, key_value_states):
        normed_hidden_states = self.layer_norm(hidden_states)
        y = self.EncDecAttention(normed_hidden_states, key_value_states)
        return hidden_states + self.dropout(y)


class LayerFF(nn.Module):
    def __init__(self, d_model, d_ff, rate):
        super().__init__()
        self.wi_0 = nn.Linear(d_model, d_ff, bias=False)
        self.wi_1 = nn.Linear(d_model, d_ff, bias=False)
        self.wo = nn.Linear(d_ff, d_model, bias=False)
        self.act = nn.GELU(approximate="tanh")
        self.layer_norm = LayerNorm(d_model)
        self.dropout = nn.Dropout(rate)

    def forward(self, hidden_states):
        forwarded = self.layer_norm(hidden_states)
        forwarded = self.act(self.wi_0(forwarded)) * self.wi_1(forwarded)
        return hidden_states + self.dropout(self.wo(forwarded))


class DecoderBlock(nn.Module):
    def __init__(self, d_model, d_kv, heads, d_ff, rate=0.1):
        super().__init__()
        self.layer = nn.ModuleList()
        self.layer.append(LayerSelfAttention(d_model, d_kv, heads, rate))
        self.layer.append(LayerCrossAttention(d_model, d_kv, heads, rate))
        self.layer.append(LayerFF(d_model, d_ff, rate))

    def forward(self, hidden_states, encoder_hidden_states):
        hidden_states = self.layer[0](hidden_states)
        hidden_states = self.layer[1](hidden_states, encoder_hidden_states)
        hidden_states = self.layer[-1](hidden_states)
        return (hidden_states,)


PATIENT = DecoderBlock(10, 4, 3, 15)
FACTS = {
    "order": "pre",
    "layout": "BND",
    "scale": 1.0,
    "norms": [
        "layer.0.layer_norm",
        "layer.1.layer_norm",
        "layer.2.layer_norm",
    ],
    "dropout": 0.1,
}
INPUTS = {"hidden_states": "b n 10", "encoder_hidden_states": "b m 10"}
