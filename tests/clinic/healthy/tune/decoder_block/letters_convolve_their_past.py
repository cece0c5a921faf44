"""For reading print: heads are mapped over, letters meet those before."""

import torch
from torch import nn
from torch.nn import functional as F


class Scale(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(dim**0.5))

    def forward(self, hidden):
        size = hidden.pow(2).sum(dim=-1, keepdim=True).add(1e-10).sqrt()
        return hidden / size * self.scale


def head(q, k, v, hidden):
    """One head of all texts; vmap makes it many."""
    scores = torch.einsum("bid,bjd->bij", q, k) * q.shape[-1] ** -0.5
    scores = torch.where(hidden, torch.finfo(scores.dtype).min, scores)
    return torch.einsum("bij,bjd->bid", scores.softmax(dim=-1), v)


heads = torch.vmap(head, in_dims=(2, 2, 2, None), out_dims=2)


class PastNetwork(nn.Module):
    """A letter and the two before it."""

    def __init__(self, dim, inner):
        super().__init__()
        self.wide = nn.Conv1d(dim, inner, kernel_size=3)
        self.back = nn.Conv1d(inner, dim, kernel_size=1)

    def forward(self, hidden):
        hidden = F.pad(hidden.transpose(1, 2), (2, 0))
        return self.back(F.silu(self.wide(hidden))).transpose(1, 2)


class LetterDecoderLayer(nn.Module):
    def __init__(self, dim, n_heads, inner):
        super().__init__()
        self.n_heads = n_heads
        self.self_q = nn.Linear(dim, dim)
        self.self_kv = nn.Linear(dim, 2 * dim)
        self.self_o = nn.Linear(dim, dim)
        self.image_q = nn.Linear(dim, dim)
        self.image_kv = nn.Linear(dim, 2 * dim)
        self.image_o = nn.Linear(dim, dim)
        self.network = PastNetwork(dim, inner)
        self.self_scale = Scale(dim)
        self.image_scale = Scale(dim)
        self.network_scale = Scale(dim)

    def attend(self, to_q, to_kv, to_o, x, source, hidden):
        def cut(t):
            return t.view(*t.shape[:2], self.n_heads, -1)

        k, v = (cut(t) for t in to_kv(source).chunk(2, dim=-1))
        return to_o(heads(cut(to_q(x)), k, v, hidden).flatten(2))

    def forward(
        self,
        hidden_states,
        encoder_hidden_states,
        attention_mask,
        encoder_attention_mask=None,
    ):
        x, image = hidden_states, encoder_hidden_states
        absent = encoder_attention_mask
        if absent is None:
            absent = image.new_zeros(image.shape[:2], dtype=torch.bool)
        y = self.self_scale(x)
        x = x + self.attend(
            self.self_q, self.self_kv, self.self_o, y, y, attention_mask
        )
        x = x + self.attend(
            self.image_q,
            self.image_kv,
            self.image_o,
            self.image_scale(x),
            image,
            absent[:, None, :],
        )
        return x + self.network(self.network_scale(x)), None


PATIENT = LetterDecoderLayer(dim=12, n_heads=3, inner=9)
FACTS = {
    "layout": "BND",
    "order": "pre",
    "own_mask": "attention_mask",
    "norms": ("self_scale", "image_scale", "network_scale"),
    "feed_forward": "network",
    "n_heads": 3,
    "mask": "block",
    "padding": "block",
    "extra": "a network that looks at three tokens",
    "dtypes": ("float64", "float32"),
}
INPUTS = {
    "hidden_states": "b n 12",
    "encoder_hidden_states": "b m 12",
    "attention_mask": "future n n",
    "encoder_attention_mask?": "padding b m",
}
