"""Signals: channels before time, and a half of the scale on either side."""

import math

import torch
import torch.nn as nn


class QKVAttention(nn.Module):
    def forward(self, q, k, v, encoder_kv=None):
        width = q.size(1)
        scale = 1 / math.sqrt(math.sqrt(width))
        if encoder_kv is not None:
            more_k, more_v = encoder_kv
            k = torch.cat([more_k, k], dim=-1)
            v = torch.cat([more_v, v], dim=-1)
        weight = torch.bmm((q * scale).mT, k * scale)  # more stable in fp16
        weight = torch.softmax(weight, dim=-1)
        return torch.bmm(v, weight.mT)


PATIENT = QKVAttention()
FACTS = {"layout": "BDN"}
INPUTS = {"q": "b d n", "k": "b d m", "v": "b e m"}
