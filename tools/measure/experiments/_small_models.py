"""The small models that the experiments of the chapter on models train."""

from functools import partial

import torch
from torch import Tensor, nn

from selfattn import MultiHeadAttention, fused_attention
from selfattn.blocks import EncoderBlock
from selfattn.data import language, sentiment
from selfattn.layers import LayerNorm
from selfattn.masks import padding_mask
from selfattn.models import ClassHead, Decoder, Embedding, Encoder
from selfattn.positions import LearnedPositions

N, D, HEADS, LAYERS = 48, 48, 4, 2
N_LETTERS = len(language.CHARACTERS)
HIDDEN = 96  # of the LSTM, for about as many parameters as the Transformer


def blocks(d: int, d_ff: int) -> list[EncoderBlock]:
    """So many pre-norm blocks."""
    fast = partial(MultiHeadAttention, attend=fused_attention)
    block = partial(EncoderBlock, d, HEADS, d_ff, pre=True, multihead=fast)
    return [block() for _ in range(LAYERS)]


def transformer() -> Decoder:
    """The language model of the chapter."""
    positions = LearnedPositions(N, D)
    embed = Embedding(N_LETTERS, D, positions=positions)
    return Decoder(embed, blocks(D, 4 * D), norm=LayerNorm(D))


class Recurrent(nn.Module):
    """Letters, one layer of LSTM, a score for each letter."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(N_LETTERS, D)
        self.lstm = nn.LSTM(D, HIDDEN, batch_first=True)
        self.head = nn.Linear(HIDDEN, N_LETTERS)

    def forward(self, tokens: Tensor) -> Tensor:
        """Logits of what follows each letter, (batch, n, n_tokens)."""
        return self.head(self.lstm(self.embed(tokens))[0])


class Classifier(nn.Module):
    """Words to a class: an encoder, an LSTM, or their average."""

    def __init__(self, arm: str, d: int = 32) -> None:
        super().__init__()
        self.arm = arm
        n_words, longest = len(sentiment.WORDS) + 1, sentiment.LONGEST + 1
        places = LearnedPositions(longest, d) if arm == "encoder" else None
        embed = Embedding(n_words, d, positions=places)
        made = [] if arm in ("LSTM", "average") else blocks(d, 2 * d)
        self.encoder = Encoder(embed, made, norm=LayerNorm(d))
        self.lstm = nn.LSTM(d, d, 2, batch_first=True)
        self.head = ClassHead(d, 2)

    def forward(self, tokens: Tensor, lengths: Tensor) -> Tensor:
        """Logits of blame and praise, (batch, 2)."""
        first = torch.full_like(tokens[:, :1], len(sentiment.WORDS))
        tokens = torch.cat((first, tokens), dim=1)
        real = padding_mask(lengths + 1, tokens.shape[1])
        x = self.encoder(tokens, mask=real)
        rows = torch.arange(len(x))
        if self.arm == "LSTM":
            x = self.lstm(x)[0][rows, lengths][:, None]
        if self.arm == "average":
            kept = real[:, 0, 0, :, None]
            x = (x * kept).sum(1, keepdim=True) / kept.sum(1, keepdim=True)
        return self.head(x)
