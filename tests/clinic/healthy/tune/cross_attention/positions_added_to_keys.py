"""Object queries: positions go to queries and keys, never to values."""

import torch
from torch import Tensor, nn


def with_pos_embed(tensor: Tensor, pos: Tensor | None) -> Tensor:
    return tensor if pos is None else tensor + pos


class ObjectAttention(nn.Module):
    def __init__(self, d_model: int, nhead: int) -> None:
        super().__init__()
        self.nhead = nhead
        self.q_content = nn.Linear(d_model, d_model)
        self.k_content = nn.Linear(d_model, d_model)
        self.v_content = nn.Linear(d_model, d_model)
        self.out_proj = nn.Linear(d_model, d_model)

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        memory_key_padding_mask: Tensor | None = None,
        pos: Tensor | None = None,
        query_pos: Tensor | None = None,
    ) -> Tensor:
        # all of them (length, batch, d_model), as the library had it once
        q = self.q_content(with_pos_embed(tgt, query_pos))
        k = self.k_content(with_pos_embed(memory, pos))
        v = self.v_content(memory)
        q, k, v = (t.unflatten(2, (self.nhead, -1)) for t in (q, k, v))

        logits = torch.einsum("qbhc,kbhc->bhqk", q, k) / q.shape[-1] ** 0.5
        if memory_key_padding_mask is not None:
            hidden = memory_key_padding_mask[:, None, None]
            logits = logits.masked_fill(hidden, -torch.inf)
        weights = logits.softmax(dim=-1)
        out = torch.einsum("bhqk,kbhc->qbhc", weights, v)
        return self.out_proj(out.flatten(2))


PATIENT = ObjectAttention(12, 3)
FACTS = {
    "layout": "NBD",
    "n_heads": 3,
    "padding": "block",
    "empty_row": "nan",
    "projections": {
        "q": "q_content",
        "k": "k_content",
        "v": "v_content",
        "out": "out_proj",
    },
}
INPUTS = {
    "tgt": "n b 12",
    "memory": "m b 12",
    "memory_key_padding_mask?": "padding b m",
    "pos?": "m b 12",
    "query_pos?": "n b 12",
}
