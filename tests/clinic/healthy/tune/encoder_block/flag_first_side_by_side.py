"""For music: notes come last and time first; both sublayers at once."""

import torch
from torch import nn


class RootNorm(nn.Module):
    def __init__(self, size, eps=1e-5):
        super().__init__()
        self.size, self.eps = size, eps
        self.gain = nn.Parameter(torch.ones(size))

    def forward(self, notes):
        power = notes.pow(2).mean(dim=-1, keepdim=True)
        return notes * torch.rsqrt(power + self.eps) * self.gain


class NoteAttention(nn.Module):
    """The root is taken once, when weights are made; not at every call."""

    def __init__(self, size, voices):
        super().__init__()
        self.voices = voices
        self.width = size // voices
        self.query = nn.Linear(size, size, bias=False)
        self.key = nn.Linear(size, size, bias=False)
        self.value = nn.Linear(size, size, bias=False)
        self.last = nn.Linear(size, size, bias=False)
        with torch.no_grad():
            self.query.weight.div_(self.width**0.5)

    def forward(self, is_causal, notes):
        time, batch, _ = notes.shape
        q, k, v = (
            f(notes)
            .view(time, batch * self.voices, self.width)
            .transpose(0, 1)
            for f in (self.query, self.key, self.value)
        )
        scores = q @ k.transpose(1, 2)
        if is_causal:
            # a one on the diagonal runs on downwards
            past = torch.eye(time, device=notes.device).cumsum(dim=0)
            scores = scores.masked_fill(past == 0, -torch.inf)
        heard = (scores.softmax(dim=-1) @ v).transpose(0, 1)
        return self.last(heard.reshape(time, batch, -1))


class MusicBlock(nn.Module):
    def __init__(self, size, voices, times=4, act=nn.GELU, eps=1e-5, p=0.1):
        super().__init__()
        self.attend_norm = RootNorm(size, eps)
        self.attend = NoteAttention(size, voices)
        self.think_norm = RootNorm(size, eps)
        self.think = nn.Sequential(
            nn.Linear(size, times * size), act(), nn.Linear(times * size, size)
        )
        self.drop = nn.Dropout(p)

    def forward(self, is_causal, notes):
        heard = self.attend(is_causal, self.attend_norm(notes))
        thought = self.think(self.think_norm(notes))
        return notes + self.drop(heard) + self.drop(thought)


PATIENT = MusicBlock(size=12, voices=3).eval()
FACTS = {
    "layout": "NBD",
    "order": "parallel",
    "attention": "attend",
    "norms": ["attend_norm", "think_norm"],
    "feed_forward": "think",
    "dropout": 0.1,
    "scale": 1.0,
    "dtypes": ("float64", "float32", "bfloat16"),
}
INPUTS = {"is_causal": "true", "notes": "n b 12"}
OTHER_INPUTS = [{"is_causal": "int 0", "notes": "n b 12"}]
