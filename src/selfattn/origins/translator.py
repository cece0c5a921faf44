"""Two recurrent networks, with or without a look back between them.

Here attention began: as the writer's way of looking back at every state of
the reader, instead of at its last one alone.
"""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from selfattn.called import known_as
from selfattn.checks import (
    are_at_hand,
    check_divides,
    check_places,
    check_tensor,
)
from selfattn.entering import (
    attended,
    check_meets,
    check_width,
    lent,
    look_up,
    weighed,
)
from selfattn.masks import padding_mask
from selfattn.mismatches import check_filled
from selfattn.origins.networks import unmapped
from selfattn.signatures import Positive, checked, shown

Source = Int[Tensor, "batch n_k"]
Target = Int[Tensor, "batch n_q"]
Lengths = Int[Tensor, " batch"] | None
TABLES = {"mask": "memory.mask"}


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
        TypeError: if what attends has no weights.

    References: Sutskever et al. (2014); Cho et al. (2014); Luong et al.
    (2015), section 3.1, equations 5 and 6.

    >>> from selfattn.origins.scores import AdditiveAttention
    >>> model = Translator(11, 7, 8, attend=AdditiveAttention(8, 8, 8))
    >>> source, target = torch.zeros(2, 5).long(), torch.zeros(2, 3).long()
    >>> model(source, target).shape
    torch.Size([2, 3, 7])
    """

    @checked
    def __init__(
        self,
        n_source: Positive,
        n_target: Positive,
        d_model: Positive,
        *,
        attend: nn.Module | None = None,
    ):
        """Make the embeddings, the reader, the writer and what it says."""
        super().__init__()
        check_divides("2", 2, "d_model", d_model)
        if attend is not None and not hasattr(attend, "weights"):
            raise TypeError(
                "attend must be a module with weights, such as "
                f"AdditiveAttention, but it is {shown(attend)}"
            )
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

    @checked
    def read(self, source: Source, lengths: Lengths = None) -> Memory:
        """Read a source once, for every step of writing.

        Args:
            source: token numbers, (batch, n_k).
            lengths: how many of each are real, (batch,); all when None. The
                reader stops there, and comes back from there.
        """
        check_at_hand(lengths)
        x, n = look_up("source", source, self.source), source.shape[-1]
        check_filled(self.reader, x)
        if n == 0 or (lengths is not None and (lengths < 1).any()):
            raise ValueError(
                "a source must have a token to read, but it is "
                f"{tuple(source.shape)} and lengths={lengths}"
            )
        if lengths is None:
            states, last = unmapped(self.reader, x)
            mask = None
        else:
            mask = padding_mask(lengths.to(source.device), n)[:, 0]
            packed = pack_padded_sequence(
                x, lengths.cpu(), batch_first=True, enforce_sorted=False
            )
            packed_states, last = unmapped(self.reader, packed)
            states, _ = pad_packed_sequence(
                packed_states, batch_first=True, total_length=n
            )
        summary = last.transpose(0, 1).flatten(1)[None]  # both directions
        return Memory(states, summary, mask)

    @checked
    def write(
        self, target: Target, memory: Memory, state: Tensor | None = None
    ) -> tuple[Float[Tensor, "batch n_q n_target"], Tensor]:
        """Logits of what follows each target token, and the last state."""
        check_target(target, memory)
        check_fits(memory, self.writer)
        state = memory.summary if state is None else state
        check_state(state, memory)
        words = look_up("target", target, self.target)
        for part in (self.join, self.head):
            check_filled(part, words)
        h, state = unmapped(self.writer, words, state)
        if self.attend is not None:
            k, v = lent(self.attend, memory.states, memory.states)
            asked = self.attend, h, k, v
            context = known_as(TABLES, attended, *asked, mask=memory.mask)
            h = torch.cat((context, h), dim=-1)
        return self.head(self.join(h).tanh()), state

    @checked
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

    @checked
    def step(
        self, tokens: Target, state: Tensor | None = None, *, memory: Memory
    ) -> tuple[Float[Tensor, "batch n_target"], Tensor]:
        """Logits of the next token, and the state to go on from."""
        logits, state = self.write(tokens, memory, state)
        return logits[:, -1], state

    @checked
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
        check_target(target, memory)
        asked = look_up("target", target, self.target)
        h, _ = unmapped(self.writer, asked, memory.summary)
        weigh = self.attend.weights
        return weighed(weigh, h, memory.states, mask=memory.mask)


def check_at_hand(lengths: Lengths) -> None:
    """Raise if there are lengths without numbers: the reader counts steps.
    Where a model is compiled, its graph breaks there.
    """
    compiled = torch.compiler.is_dynamo_compiling()
    if compiled and not torch.compiler.is_exporting():
        return
    if lengths is not None and not are_at_hand(lengths):
        raise ValueError(
            "lengths must be numbers that are at hand, which on meta, within "
            "torch.func and in an export they are not, but lengths is "
            f"{shown(lengths)} on {lengths.device}"
        )


def check_state(state: Tensor, memory: Memory) -> None:
    """Raise unless a state is of the texts that were read."""
    wanted = memory.summary
    check_tensor("state", state)
    check_places(**{"memory.summary": wanted, "state": state})
    if state.shape != wanted.shape or state.dtype != wanted.dtype:
        raise ValueError(
            "a state must be like what was read, "
            f"{shown(wanted)}, but state is {shown(state)}"
        )


def check_fits(memory: Memory, writer: nn.GRU) -> None:
    """Raise unless such a writer can look at what was read."""
    check_width("memory.states", memory.states, writer.hidden_size)
    check_meets("memory.states", memory.states, writer)
    check_meets("memory.summary", memory.summary, writer)


def check_read(memory: Memory) -> None:
    """Raise unless all of it is of the same sources: the states of one would
    broadcast to all, and not say so.
    """
    for name, x in (("states", memory.states), ("summary", memory.summary)):
        check_tensor(f"memory.{name}", x)
    states, summary = memory.states, memory.summary
    fits = states.ndim == summary.ndim == 3
    if not (fits and (1, *states.shape[::2]) == tuple(summary.shape)):
        raise ValueError(
            "memory must hold states (batch, n_k, d_model) and their summary "
            f"(1, batch, d_model), but it holds {tuple(states.shape)} and "
            f"{tuple(summary.shape)}"
        )


def check_target(target: Tensor, memory: Memory) -> None:
    """Raise unless there is something to write for each source."""
    check_read(memory)
    n_read = memory.summary.shape[1]
    if n_read != target.shape[0] or target.numel() == 0:
        raise ValueError(
            "as many targets must be written as sources were read, of at "
            f"least 1 token, but target is {tuple(target.shape)} and memory "
            f"is of {n_read}"
        )
