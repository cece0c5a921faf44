"""One object for all layers, which each layer updates under its number."""

import torch
import torch.nn.functional as F
from torch import nn


class DynamicCache:
    def __init__(self):
        self.key_cache = []
        self.value_cache = []

    def update(self, key_states, value_states, layer_idx):
        if len(self.key_cache) <= layer_idx:
            self.key_cache.append(key_states)
            self.value_cache.append(value_states)
        else:
            old_k, old_v = self.key_cache[layer_idx], self.value_cache
            key_states = torch.cat([old_k, key_states], dim=-2)
            value_states = torch.cat([old_v[layer_idx], value_states], dim=-2)
            self.key_cache[layer_idx] = key_states
            self.value_cache[layer_idx] = value_states
        return key_states, value_states

    def get_seq_length(self):
        return self.key_cache[0].shape[-2] if self.key_cache else 0


class DecoderLayer(nn.Module):
    def __init__(self, hidden_size, num_heads, layer_idx):
        super().__init__()
        self.layer_idx = layer_idx
        self.num_heads = num_heads
        self.self_attn_layer_norm = nn.LayerNorm(hidden_size)
        self.qkv_proj = nn.Linear(hidden_size, 3 * hidden_size)
        self.out_proj = nn.Linear(hidden_size, hidden_size)
        self.final_layer_norm = nn.LayerNorm(hidden_size)
        self.mlp = nn.Sequential(
            nn.Linear(hidden_size, 20), nn.ReLU(), nn.Linear(20, hidden_size)
        )

    def forward(self, hidden_states, attention_mask, past_key_values):
        bsz, q_len, width = hidden_states.shape
        qkv = self.qkv_proj(self.self_attn_layer_norm(hidden_states))
        q, k, v = qkv.view(bsz, q_len, 3, self.num_heads, -1).unbind(2)
        k, v = past_key_values.update(
            k.transpose(1, 2), v.transpose(1, 2), self.layer_idx
        )
        attn = F.scaled_dot_product_attention(
            q.transpose(1, 2), k, v, attn_mask=attention_mask
        )
        attn = attn.transpose(1, 2).reshape(bsz, q_len, width)
        hidden_states = hidden_states + self.out_proj(attn)
        return hidden_states + self.mlp(self.final_layer_norm(hidden_states))


class Decoder(nn.Module):
    def __init__(self, hidden_size=12, num_heads=3, num_hidden_layers=3):
        super().__init__()
        self.layers = nn.ModuleList(
            DecoderLayer(hidden_size, num_heads, i)
            for i in range(num_hidden_layers)
        )

    def forward(self, hidden_states, past_key_values=None):
        if past_key_values is None:
            past_key_values = DynamicCache()
        offset = past_key_values.get_seq_length()
        q_len = hidden_states.shape[1]
        cache_position = torch.arange(offset, offset + q_len)
        keys = torch.arange(offset + q_len)
        mask = keys[None, :] <= cache_position[:, None]
        for layer in self.layers:
            hidden_states = layer(hidden_states, mask, past_key_values)
        return hidden_states, past_key_values


PATIENT = Decoder()
FACTS = {
    "d_model": 12,
    "call": lambda model, x, cache: model(x, past_key_values=cache),
}
INPUTS = {"hidden_states": "b n 12"}
