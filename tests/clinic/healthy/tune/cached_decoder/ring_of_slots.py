"""A window of four tokens in slots that are used again, round and round."""

import torch
from torch import nn


class RollingBufferAttention(nn.Module):
    def __init__(self, dim, n_heads, sliding_window):
        super().__init__()
        self.n_heads = n_heads
        self.sliding_window = sliding_window
        self.wqkv = nn.Linear(dim, 3 * dim, bias=False)
        self.wo = nn.Linear(dim, dim, bias=False)

    def forward(self, x, cache=None):
        b, n, d = x.shape
        W = self.sliding_window
        q, k, v = self.wqkv(x).view(b, n, 3, self.n_heads, -1).unbind(2)
        if cache is None:
            empty = k.new_zeros(b, W, *k.shape[2:])
            no_position = torch.full((W,), -1, device=x.device)
            cache = (empty, empty, no_position, 0)
        cache_k, cache_v, cache_pos, seen = cache

        # what is in the slots, and then what is new
        pos = torch.arange(seen, seen + n, device=x.device)
        all_k = torch.cat([cache_k, k], dim=1)
        all_v = torch.cat([cache_v, v], dim=1)
        all_pos = torch.cat([cache_pos, pos])
        back = pos[:, None] - all_pos[None, :]
        visible = (all_pos >= 0) & (back >= 0) & (back < W)

        scores = torch.einsum("bnhd,bmhd->bhnm", q, all_k) * q.size(-1) ** -0.5
        scores = scores.masked_fill(~visible, -torch.inf)
        mixed = torch.einsum("bhnm,bmhd->bnhd", scores.softmax(-1), all_v)

        # only the last W are worth a slot
        slots = pos[-W:] % W
        cache_k = cache_k.index_copy(1, slots, k[:, -W:])
        cache_v = cache_v.index_copy(1, slots, v[:, -W:])
        cache_pos = cache_pos.index_copy(0, slots, pos[-W:])
        out = self.wo(mixed.reshape(b, n, d))
        return out, (cache_k, cache_v, cache_pos, seen + n)


PATIENT = RollingBufferAttention(12, 3, sliding_window=4)
FACTS = {
    "d_model": 12,
    "window": 4,
    "call": lambda layer, x, cache: layer(x, cache),
}
INPUTS = {"x": "b n 12"}
SIZES = {"n": (2, 14)}
