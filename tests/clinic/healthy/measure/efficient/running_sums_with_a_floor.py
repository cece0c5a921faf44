"""From the days of torch 0.4: running sums of features, padding wiped out."""

import torch
import torch.nn as nn


class RunningSums(nn.Module):
    """Linear attention to what came before; (value, key, query)."""

    def __init__(
        self,
        floor=0.01,
        power=1,
        time_dim=1,
        check=True,
        keep_sums=False,
    ):
        super(RunningSums, self).__init__()  # noqa: UP008
        self.floor = floor
        self.power = power
        self.time_dim = time_dim
        self.check = check
        self.keep_sums = keep_sums
        self.sums = None

    def phi(self, x):
        return x.clamp(min=0).pow(self.power).add(self.floor)

    def forward(self, value, key, query, pad_mask=None):
        # value, key, query: N x T x H x E; pad_mask: N x T, 1 for a token
        if self.check and key.size(1) != query.size(1):
            raise ValueError("sequences must be of one length")
        query, key = self.phi(query), self.phi(key)
        if pad_mask is not None:
            real = pad_mask.type_as(key).unsqueeze(-1).unsqueeze(-1)
            key = key * real.expand_as(key)
        outer = key.unsqueeze(-1) * value.unsqueeze(-2)  # N x T x H x D x E
        above = torch.cumsum(outer, self.time_dim)
        denom = torch.cumsum(key, self.time_dim)
        if self.keep_sums:
            self.sums = (above[:, -1].detach(), denom[:, -1].detach())
        above = (query.unsqueeze(-1) * above).sum(-2)
        denom = (query * denom).sum(-1, keepdim=True)
        return above / denom.expand_as(above), None


PATIENT = RunningSums()
FACTS = {
    "layout": "BNHD",
    "formula": "claimed",
    "kernel": lambda x: x.clamp(min=0) + 0.01,
    "causal": True,
    "padding": "keep",
    "square": True,
    "names": {
        "q": "query",
        "k": "key",
        "v": "value",
        "mask": "pad_mask",
    },
    "dtypes": ("float64", "float32"),
}
INPUTS = {
    "query": "b n h d",
    "key": "b n h d",
    "value": "b n h e",
    "pad_mask?": "real b n",
}
