"""The library's layer, told that sound frames are wider than words."""

import torch
from torch import nn


class AudioToText(nn.Module):
    def __init__(self, text_dim, audio_dim, num_heads, dropout):
        super().__init__()
        self.attn = nn.MultiheadAttention(
            embed_dim=text_dim,
            num_heads=num_heads,
            dropout=dropout,
            kdim=audio_dim,
            vdim=audio_dim,
            batch_first=True,
        )

    def forward(self, text, audio, audio_lengths=None, need_weights=False):
        ignore = None
        if audio_lengths is not None:
            frame = torch.arange(audio.shape[1], device=audio.device)
            ignore = frame.expand(len(audio), -1) >= audio_lengths[:, None]
        attended, weights = self.attn(
            text,
            audio,
            audio,
            key_padding_mask=ignore,
            need_weights=need_weights,
            average_attn_weights=False,
        )
        return (attended, weights) if need_weights else attended


PATIENT = AudioToText(12, 9, num_heads=4, dropout=0.1)
FACTS = {"layout": "BND", "mask": "lengths", "n_heads": 4, "dropout": 0.1}
INPUTS = {
    "text": "b n 12",
    "audio": "b m 9",
    "audio_lengths?": "lengths b m",
    "need_weights?": "true",
}
