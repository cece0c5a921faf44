"""Of sign language: video first; one map makes both queries and keys."""

import torch
from torch import einsum, nn


class Norm(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(d))
        self.offset = nn.Parameter(torch.zeros(d))

    def forward(self, x):
        x = x - einsum("btd->bt", x)[..., None] / x.shape[-1]
        size = einsum("btd,btd->bt", x, x) / x.shape[-1]
        return x * (size + 1e-6).rsqrt()[..., None] * self.scale + self.offset


class TiedAttention(nn.Module):
    """Gloss and frame are compared in one space, so one map will do."""

    def __init__(self, d, heads):
        super().__init__()
        self.space = nn.Parameter(torch.randn(d, heads, d // heads) / d**0.5)
        self.value = nn.Parameter(torch.randn(d, heads, d // heads) / d**0.5)
        self.merge = nn.Parameter(torch.randn(heads, d // heads, d) / d**0.5)

    def forward(self, asking, asked, blocked):
        q = einsum("btd,dhc->bhtc", asking, self.space)
        k = einsum("bsd,dhc->bhsc", asked, self.space)
        v = einsum("bsd,dhc->bhsc", asked, self.value)
        like = einsum("bhtc,bhsc->bhts", q, k) / q.shape[-1] ** 0.5
        if blocked is not None:
            like = like.masked_fill(blocked, -torch.inf)
        return einsum("bhts,bhsc,hcd->btd", like.softmax(-1), v, self.merge)


class GatedUnit(nn.Module):
    def __init__(self, d, hidden):
        super().__init__()
        self.value, self.gate = nn.Linear(d, hidden), nn.Linear(d, hidden)
        self.back = nn.Linear(hidden, d)

    def forward(self, x):
        return self.back(self.value(x) * nn.functional.gelu(self.gate(x)))


class GlossDecoderLayer(nn.Module):
    def __init__(self, d, heads, hidden=10, p=0.1):
        super().__init__()
        self.own, self.video = TiedAttention(d, heads), TiedAttention(d, heads)
        self.unit = GatedUnit(d, hidden)
        self.norms = nn.ModuleList([Norm(d), Norm(d), Norm(d)])
        self.p = nn.Dropout(p)

    def forward(self, video, gloss, video_mask=None):
        step = torch.arange(gloss.shape[1], device=gloss.device)
        future = step[None, :] > step[:, None]
        gloss = self.norms[0](gloss + self.p(self.own(gloss, gloss, future)))
        read = self.video(gloss, video, video_mask)
        gloss = self.norms[1](gloss + self.p(read))
        return self.norms[2](gloss + self.p(self.unit(gloss)))


PATIENT = GlossDecoderLayer(d=12, heads=3).eval()
FACTS = {
    "layout": "BND",
    "order": "post",
    "self_attention": "own",
    "cross_attention": "video",
    "norms": ["norms.0", "norms.1", "norms.2"],
    "feed_forward": "unit",
    "mask": "block",
    "dropout": 0.1,
    "dtypes": ("float64", "float32", "bfloat16"),
}
INPUTS = {
    "video": "b m 12",
    "gloss": "b n 12",
    "video_mask?": "block b 1 1 m",
}
