"""An embedding made of a table of sinusoids, which is never learnt."""

import numpy as np
import torch
import torch.nn as nn


def sinusoid_table(n_position, d_model):
    def angle(pos, i):
        return pos / np.power(10000, 2 * (i // 2) / d_model)

    rows = [
        [angle(pos, i) for i in range(d_model)] for pos in range(n_position)
    ]
    table = np.array(rows)
    table[:, 0::2] = np.sin(table[:, 0::2])
    table[:, 1::2] = np.cos(table[:, 1::2])
    return torch.FloatTensor(table)


class EncoderInput(nn.Module):
    def __init__(self, src_len, d_model):
        super().__init__()
        table = sinusoid_table(src_len, d_model)
        self.pos_emb = nn.Embedding.from_pretrained(table, freeze=True)

    def forward(self, enc_embs):
        # enc_embs: [batch_size x source_len x d_model]
        batch_size, source_len, _ = enc_embs.size()
        pos = torch.arange(source_len, device=enc_embs.device)
        pos = pos.unsqueeze(0).expand(batch_size, source_len)
        return enc_embs + self.pos_emb(pos).type_as(enc_embs)


PATIENT = EncoderInput(30, 6)
FACTS = {"table": PATIENT.pos_emb.weight.detach(), "layout": "BND"}
INPUTS = {"enc_embs": "b n 6"}
SIZES = {"n": (1, 30)}
