"""Made to be exported: three axes at most, and one matrix holds k, v, q."""

import torch
import torch.nn as nn


class ExportableAttention(nn.Module):
    def __init__(self, hidden: int, n_head: int):
        super().__init__()
        self.n_head = n_head
        self.head_size = hidden // n_head
        self.inv_norm = self.head_size**-0.5
        self.kvq = nn.Linear(hidden, 3 * hidden)
        self.dense = nn.Linear(hidden, hidden)

    def fold(self, t: torch.Tensor) -> torch.Tensor:
        """(batch, tokens, hidden) to (batch * heads, tokens, head size)."""
        b, n, _ = t.shape
        t = t.reshape(b, n, self.n_head, self.head_size).transpose(1, 2)
        return t.reshape(b * self.n_head, n, self.head_size)

    def unfold(self, t: torch.Tensor) -> torch.Tensor:
        bh, n, _ = t.shape
        t = t.reshape(bh // self.n_head, self.n_head, n, self.head_size)
        return t.transpose(1, 2).flatten(2)

    def forward(
        self,
        hidden_states: torch.Tensor,
        attention_mask: torch.Tensor | None = None,
    ) -> torch.Tensor:
        b, n, _ = hidden_states.shape
        key, value, query = (
            self.fold(t) for t in self.kvq(hidden_states).chunk(3, -1)
        )
        if attention_mask is None:
            base = query.new_zeros(b * self.n_head, n, n)
        else:
            base = attention_mask.expand(b, self.n_head, n, n)
            base = base.reshape(b * self.n_head, n, n)
        scores = torch.baddbmm(
            base, query, key.transpose(1, 2), beta=1.0, alpha=self.inv_norm
        )
        context = torch.bmm(scores.softmax(2), value)
        return self.dense(self.unfold(context))


PATIENT = ExportableAttention(hidden=12, n_head=4)
FACTS = {
    "layout": "BND",
    "causal": False,
    "mask": "add",
    "mask_axes": "B1NN",
    "names": {"x": "hidden_states", "mask": "attention_mask"},
    "packed": "by part",
    "order": "kvq",
    "projections": {"qkv": "kvq", "out": "dense"},
    "d_model": 12,
    "n_heads": 4,
    "dtypes": ("float64", "float32", "bfloat16"),
}
INPUTS = {"hidden_states": "b n 12", "attention_mask?": "add b 1 n n"}
