"""Recurrent translation of 2016: dot scores as they are, lengths, time first.

Nothing is divided by the root of the width, as nobody did so then.
"""

import torch
import torch.nn as nn
import torch.nn.functional as F


class GlobalAttention(nn.Module):
    score_types = ("dot", "scaled")

    def __init__(self, score="dot"):
        super().__init__()
        if score not in self.score_types:
            raise ValueError(f"score should be one of {self.score_types}")
        self.score = score

    def energies(self, dec, enc, penalty):
        """(batch, tgt, src): products, and a penalty for what is padding."""
        alpha = 1.0 if self.score == "dot" else dec.size(-1) ** -0.5
        return torch.baddbmm(penalty, dec, enc.transpose(1, 2), alpha=alpha)

    def forward(self, decoder_output, encoder_output, memory, src_lens=None):
        src, batch = encoder_output.size()[:2]
        dec = decoder_output.transpose(0, 1)
        enc = encoder_output.transpose(0, 1)

        penalty = dec.new_zeros(batch, 1, src)
        if src_lens is not None:
            step = torch.arange(src, device=src_lens.device)
            over = step.unsqueeze(0) >= src_lens.unsqueeze(1)
            penalty.masked_fill_(over.unsqueeze(1), -float("inf"))

        attn = F.softmax(self.energies(dec, enc, penalty), dim=-1)
        context = attn.bmm(memory.transpose(0, 1))
        return context.transpose(0, 1), attn


PATIENT = GlobalAttention("dot")
FACTS = {
    "layout": "NBD",
    "mask": "lengths",
    "names": {
        "q": "decoder_output",
        "k": "encoder_output",
        "v": "memory",
        "mask": "src_lens",
    },
    "scale": 1.0,
    "dtypes": ("float64", "float32", "bfloat16"),
}
INPUTS = {
    "decoder_output": "n b d",
    "encoder_output": "m b d",
    "memory": "m b e",
    "src_lens?": "lengths b m",
}
