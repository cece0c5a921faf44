"""By a biologist: a gate on what residues tell, and a bias for their pairs."""

import torch
from torch import nn


def weight(*shape, fan_in):
    return nn.Parameter(torch.randn(shape) * fan_in**-0.5)


class GatedResidueAttention(nn.Module):
    """a: channels, h: heads, c: channels of a head; q and k: residues."""

    def __init__(self, num_channel, num_head):
        super().__init__()
        per_head = num_channel // num_head
        wide = (num_channel, num_head, per_head)
        self.query_w = weight(*wide, fan_in=num_channel)
        self.key_w = weight(*wide, fan_in=num_channel)
        self.value_w = weight(*wide, fan_in=num_channel)
        self.gating_w = nn.Parameter(torch.zeros(wide))
        self.gating_b = nn.Parameter(torch.ones(num_head, per_head))
        self.output_w = weight(
            num_head, per_head, num_channel, fan_in=num_channel
        )
        self.output_b = nn.Parameter(torch.zeros(num_channel))

    def forward(self, m_act, seq_mask=None, nonbatched_bias=None):
        q = torch.einsum("bqa,ahc->bqhc", m_act, self.query_w)
        q = q * self.query_w.shape[-1] ** (-0.5)
        k = torch.einsum("bka,ahc->bkhc", m_act, self.key_w)
        v = torch.einsum("bka,ahc->bkhc", m_act, self.value_w)
        logits = torch.einsum("bqhc,bkhc->bhqk", q, k)
        if nonbatched_bias is not None:
            logits = logits + nonbatched_bias.unsqueeze(0)
        if seq_mask is not None:
            bias = 1e9 * (seq_mask.to(logits) - 1.0)
            logits = logits + bias[:, None, None, :]
        weights = torch.softmax(logits, dim=-1)
        avg = torch.einsum("bhqk,bkhc->bqhc", weights, v)
        gate = torch.einsum("bqa,ahc->bqhc", m_act, self.gating_w)
        avg = avg * torch.sigmoid(gate + self.gating_b)
        return torch.einsum("bqhc,hco->bqo", avg, self.output_w) + (
            self.output_b
        )


PATIENT = GatedResidueAttention(num_channel=12, num_head=3)
FACTS = {
    "layout": "BND",
    "causal": False,
    "formula": "own",
    "padding": "keep",
    "names": {"x": "m_act", "padding": "seq_mask"},
    "d_model": 12,
    "n_heads": 3,
    "dtypes": ("float64", "float32"),
}
INPUTS = {
    "m_act": "b n 12",
    "seq_mask?": "real b n",
    "nonbatched_bias?": "bias 3 n n",
}
