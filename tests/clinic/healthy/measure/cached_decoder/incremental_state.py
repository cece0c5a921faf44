"""For translation: tokens first, one state for all layers, each its name."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

State = dict[str, dict[str, Tensor]]


class IncrementalSelfAttention(nn.Module):
    def __init__(self, embed_dim: int, num_heads: int, name: str):
        super().__init__()
        self.num_heads = num_heads
        self.head_dim = embed_dim // num_heads
        self.scaling = self.head_dim**-0.5
        self.name = name
        self.q_proj = nn.Linear(embed_dim, embed_dim)
        self.k_proj = nn.Linear(embed_dim, embed_dim)
        self.v_proj = nn.Linear(embed_dim, embed_dim)
        self.out_proj = nn.Linear(embed_dim, embed_dim)

    def get_state(self, incremental_state: State) -> dict[str, Tensor]:
        return incremental_state.get(f"{self.name}.attn_state", {})

    def set_state(self, incremental_state: State, **state: Tensor):
        incremental_state[f"{self.name}.attn_state"] = state

    def heads_in_batch(self, t, tgt_len, bsz):
        t = t.contiguous().view(tgt_len, bsz * self.num_heads, self.head_dim)
        return t.transpose(0, 1)

    def forward(self, x: Tensor, incremental_state: State) -> Tensor:
        tgt_len, bsz, embed_dim = x.size()
        q = self.heads_in_batch(self.q_proj(x) * self.scaling, tgt_len, bsz)
        k = self.heads_in_batch(self.k_proj(x), tgt_len, bsz)
        v = self.heads_in_batch(self.v_proj(x), tgt_len, bsz)

        # states are (bsz, num_heads, src_len, head_dim), to be reordered
        saved_state = self.get_state(incremental_state)
        if "prev_key" in saved_state:
            prev_key = saved_state["prev_key"].flatten(0, 1)
            prev_value = saved_state["prev_value"].flatten(0, 1)
            k = torch.cat([prev_key, k], dim=1)
            v = torch.cat([prev_value, v], dim=1)
        src_len = k.size(1)
        self.set_state(
            incremental_state,
            prev_key=k.view(bsz, self.num_heads, src_len, self.head_dim),
            prev_value=v.view(bsz, self.num_heads, src_len, self.head_dim),
        )

        attn_weights = torch.bmm(q, k.transpose(1, 2))
        future = attn_weights.new_full((tgt_len, src_len), float("-inf"))
        future = torch.triu(future, 1 + src_len - tgt_len)
        attn_weights = attn_weights + future.unsqueeze(0)
        attn_weights = F.softmax(attn_weights, dim=-1)
        attn = torch.bmm(attn_weights, v)
        attn = attn.transpose(0, 1).contiguous()
        return self.out_proj(attn.view(tgt_len, bsz, embed_dim))


class IncrementalDecoder(nn.Module):
    def __init__(self, embed_dim=12, num_heads=2, layers=2, ffn=20):
        super().__init__()
        self.embed_dim = embed_dim
        self.self_attn = nn.ModuleList(
            IncrementalSelfAttention(embed_dim, num_heads, f"layers.{i}")
            for i in range(layers)
        )
        self.fc1 = nn.ModuleList(
            nn.Linear(embed_dim, ffn) for _ in range(layers)
        )
        self.fc2 = nn.ModuleList(
            nn.Linear(ffn, embed_dim) for _ in range(layers)
        )
        self.norms = nn.ModuleList(
            nn.LayerNorm(embed_dim) for _ in range(2 * layers)
        )

    def positions(self, start, length, like):
        """Sines in the first half of the features, cosines in the other."""
        half = self.embed_dim // 2
        rate = math.log(10000) / (half - 1)
        rate = torch.exp(torch.arange(half, dtype=like.dtype) * -rate)
        places = torch.arange(start, start + length, dtype=like.dtype)
        angles = places[:, None] * rate
        return torch.cat([angles.sin(), angles.cos()], dim=1).to(like.device)

    def forward(self, x: Tensor, incremental_state: State | None = None):
        state = dict(incremental_state or {})
        seen = 0
        if state:
            seen = self.self_attn[0].get_state(state)["prev_key"].size(2)
        x = x + self.positions(seen, x.size(1), x)
        x = x.transpose(0, 1)  # B x T x C -> T x B x C
        for i, attn in enumerate(self.self_attn):
            x = self.norms[2 * i](x + attn(x, state))
            h = self.fc2[i](F.relu(self.fc1[i](x)))
            x = self.norms[2 * i + 1](x + h)
        return x.transpose(0, 1), state


PATIENT = IncrementalDecoder()
FACTS = {
    "d_model": 12,
    "call": lambda model, x, cache: model(x, incremental_state=cache),
}
INPUTS = {"x": "b n 12"}
