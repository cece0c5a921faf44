"""Networks without attention, and the one in which attention began.

`Translator` is two recurrent networks with or without a look back between
them. `Recurrent` and `Convolution` are what the chapters compare attention
with: PyTorch's own layers, called as a block is.
"""

from collections.abc import Iterator
from typing import NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from selfattn.checks import check_divides
from selfattn.masks import padding_mask

Tokens = Float[Tensor, "batch n d_model"]
Source = Int[Tensor, "batch n_k"]
Target = Int[Tensor, "batch n_q"]
Lengths = Int[Tensor, " batch"] | None


class Memory(NamedTuple):
    """What the reader leaves behind for the writer."""

    states: Tensor  # one for each source token, (batch, n_k, d_model)
    summary: Tensor  # the last of both directions, (1, batch, d_model)
    mask: Tensor | None  # True for real tokens, (batch, 1, n_k)


class Translator(nn.Module):
    """One GRU reads the source, another writes the target.

    The writer starts from the reader's last states. With attention each of
    its states also asks all of the reader's; without, that one vector is all
    it is ever told. The order is Luong's: first the state, then the look.

    Args:
        n_source: number of different source tokens.
        n_target: number of different target tokens.
        d_model: width of everything; even, half for each way of reading.
        attend: `AdditiveAttention`, `MultiplicativeAttention`, or any module
            with ``weights`` that takes widths d_model; None for none.

    Raises:
        ValueError: if d_model is odd.

    References: Sutskever et al. (2014); Cho et al. (2014); Luong et al.
    (2015), section 3.1, equations 5 and 6.

    >>> from selfattn.origins.scores import AdditiveAttention
    >>> model = Translator(11, 7, 8, attend=AdditiveAttention(8, 8, 8))
    >>> source, target = torch.zeros(2, 5).long(), torch.zeros(2, 3).long()
    >>> model(source, target).shape
    torch.Size([2, 3, 7])
    """

    def __init__(
        self,
        n_source: int,
        n_target: int,
        d_model: int,
        *,
        attend: nn.Module | None = None,
    ):
        """Make the embeddings, the reader, the writer and what it says."""
        super().__init__()
        check_divides("2", 2, "d_model", d_model)
        self.source = nn.Embedding(n_source, d_model)
        self.target = nn.Embedding(n_target, d_model)
        self.reader = nn.GRU(
            d_model, d_model // 2, batch_first=True, bidirectional=True
        )
        self.writer = nn.GRU(d_model, d_model, batch_first=True)
        self.attend = attend
        width = d_model if attend is None else 2 * d_model
        self.join = nn.Linear(width, d_model)
        self.head = nn.Linear(d_model, n_target)

    def read(self, source: Source, lengths: Lengths = None) -> Memory:
        """Read a source once, for every step of writing.

        Args:
            source: token numbers, (batch, n_k).
            lengths: how many of each are real, (batch,); all when None. The
                reader stops there, and comes back from there.
        """
        x, n = self.source(source), source.shape[-1]
        if lengths is None:
            states, last = self.reader(x)
            mask = None
        else:
            mask = padding_mask(lengths.to(source.device), n)[:, 0]
            packed = pack_padded_sequence(
                x, lengths.cpu(), batch_first=True, enforce_sorted=False
            )
            packed_states, last = self.reader(packed)
            states, _ = pad_packed_sequence(
                packed_states, batch_first=True, total_length=n
            )
        summary = last.transpose(0, 1).flatten(1)[None]  # both directions
        return Memory(states, summary, mask)

    def write(
        self, target: Target, memory: Memory, state: Tensor | None = None
    ) -> tuple[Float[Tensor, "batch n_q n_target"], Tensor]:
        """Logits of what follows each target token, and the last state."""
        state = memory.summary if state is None else state
        h, state = self.writer(self.target(target), state)
        if self.attend is not None:
            states = memory.states
            context = self.attend(h, states, states, mask=memory.mask)
            h = torch.cat((context, h), dim=-1)
        return self.head(self.join(h).tanh()), state

    def forward(
        self, source: Source, target: Target, lengths: Lengths = None
    ) -> Float[Tensor, "batch n_q n_target"]:
        """Logits of what follows each target token, (batch, n_q, n_target).

        Args:
            source: token numbers, (batch, n_k).
            target: token numbers so far, (batch, n_q).
            lengths: as for `read`.
        """
        return self.write(target, self.read(source, lengths))[0]

    def step(
        self, tokens: Target, state: Tensor | None = None, *, memory: Memory
    ) -> tuple[Float[Tensor, "batch n_target"], Tensor]:
        """Logits of the next token, and the state to go on from."""
        logits, state = self.write(tokens, memory, state)
        return logits[:, -1], state

    def alignment(
        self, source: Source, target: Target, lengths: Lengths = None
    ) -> Float[Tensor, "batch n_q n_k"]:
        """Where each target token looked in the source.

        Raises:
            ValueError: if the model has no attention.
        """
        if self.attend is None:
            raise ValueError(
                "a translator without attention looks nowhere, but attend=None"
            )
        memory = self.read(source, lengths)
        h, _ = self.writer(self.target(target), memory.summary)
        return self.attend.weights(h, memory.states, mask=memory.mask)


class Recurrent(nn.Module):
    """PyTorch's RNN, LSTM or GRU, called as a block: tokens in, tokens out.

    Args:
        layer: one of `torch.nn`'s recurrent layers, with ``batch_first``.

    Raises:
        ValueError: if the layer would take the batch for the tokens.

    References: Hochreiter and Schmidhuber (1997); Cho et al. (2014).

    >>> layer = Recurrent(nn.LSTM(4, 6, batch_first=True))
    >>> layer(torch.zeros(2, 7, 4)).shape
    torch.Size([2, 7, 6])
    """

    def __init__(self, layer: nn.RNNBase):
        """Keep the layer."""
        super().__init__()
        if not layer.batch_first:
            raise ValueError(
                "the batch must come first, (batch, tokens, features), but "
                "batch_first=False"
            )
        self.layer = layer

    def forward(self, x: Tokens) -> Float[Tensor, "batch n d_out"]:
        """Every state, (batch, n, d_in) -> (batch, n, d_out)."""
        return self.layer(x)[0]


class Convolution(nn.Module):
    """A stack of convolutions, x + relu(conv(x)), over the tokens.

    Args:
        d_model: number of features in and out.
        kernel: how many tokens one convolution sees, its own in the middle;
            of an even number, one more lies before it than after it.
        n_layers: how many stand on each other.
        dilated: whether layer l sees tokens kernel^l apart, so that the
            reach grows exponentially with the layers, not linearly.
        causal: see only tokens at and before one's own.

    References: van den Oord et al. (2016), section 2.1; Kalchbrenner et al.
    (2016).

    >>> Convolution(4, kernel=3, n_layers=4).reach
    9
    >>> Convolution(4, kernel=3, n_layers=4, dilated=True).reach
    81
    """

    def __init__(
        self,
        d_model: int,
        *,
        kernel: int,
        n_layers: int,
        dilated: bool = False,
        causal: bool = False,
    ):
        """Make the convolutions, without padding of their own."""
        super().__init__()
        self.causal = causal
        self.layers = nn.ModuleList(
            nn.Conv1d(
                d_model,
                d_model,
                kernel,
                dilation=kernel**layer if dilated else 1,
            )
            for layer in range(n_layers)
        )

    def spans(self) -> Iterator[int]:
        """How many tokens beside its own each layer reaches over."""
        for layer in self.layers:
            yield (layer.kernel_size[0] - 1) * layer.dilation[0]

    @property
    def reach(self) -> int:
        """How many tokens one output depends on: the receptive field."""
        return 1 + sum(self.spans())

    def forward(self, x: Tokens) -> Tokens:
        """Mix neighbours, (batch, n, d_model) -> (batch, n, d_model)."""
        for layer, span in zip(self.layers, self.spans(), strict=True):
            after = 0 if self.causal else span // 2
            padded = F.pad(x.mT, (span - after, after))
            x = x + layer(padded).mT.relu()
        return x
