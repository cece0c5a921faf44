"""Keys are kept turned, heads in the batch; slopes take the place's place."""

import torch
from torch import nn


def build_alibi_tensor(num_heads, length, dtype):
    base = 2 ** (-8 / num_heads)
    powers = torch.arange(1, 1 + num_heads)
    slopes = torch.pow(base, powers)
    # a row's constant does not matter, so there is no need for distances
    return (slopes[:, None] * torch.arange(length)).to(dtype)


class Attention(nn.Module):
    def __init__(self, hidden_size, n_head):
        super().__init__()
        self.num_heads = n_head
        self.head_dim = hidden_size // n_head
        self.query_key_value = nn.Linear(hidden_size, 3 * hidden_size)
        self.dense = nn.Linear(hidden_size, hidden_size)

    def forward(self, hidden_states, layer_past=None):
        batch, q_length, _ = hidden_states.shape
        fused_qkv = self.query_key_value(hidden_states)
        fused_qkv = fused_qkv.view(
            batch, q_length, self.num_heads, 3, self.head_dim
        )
        rows = batch * self.num_heads
        query_layer = fused_qkv[..., 0, :].permute(0, 2, 1, 3)
        query_layer = query_layer.reshape(rows, q_length, self.head_dim)
        key_layer = fused_qkv[..., 1, :].permute(0, 2, 3, 1)
        key_layer = key_layer.reshape(rows, self.head_dim, q_length)
        value_layer = fused_qkv[..., 2, :].transpose(1, 2)
        value_layer = value_layer.reshape(rows, q_length, self.head_dim)

        if layer_past is not None:
            past_key, past_value = layer_past
            # keys: (rows, head_dim, kv_length), values: not turned
            key_layer = torch.cat((past_key, key_layer), dim=2)
            value_layer = torch.cat((past_value, value_layer), dim=1)
        kv_length = key_layer.size(2)

        alibi = build_alibi_tensor(
            self.num_heads, kv_length, hidden_states.dtype
        )
        matmul_result = torch.baddbmm(
            alibi.repeat(batch, 1).unsqueeze(1),
            query_layer,
            key_layer,
            beta=1.0,
            alpha=self.head_dim**-0.5,
        )
        later = torch.ones(q_length, kv_length, dtype=torch.bool)
        later = later.triu(kv_length - q_length + 1)
        scores = matmul_result.masked_fill(later, -torch.inf)
        probs = torch.softmax(scores, dim=-1)
        context = torch.bmm(probs, value_layer)
        context = context.view(batch, self.num_heads, q_length, -1)
        output = self.dense(context.transpose(1, 2).flatten(2))
        return output, (key_layer, value_layer)


PATIENT = Attention(12, 4)
FACTS = {
    "d_model": 12,
    "call": lambda layer, x, cache: layer(x, layer_past=cache),
    "dtypes": ("float64", "float32"),
}
INPUTS = {"hidden_states": "b n 12"}
