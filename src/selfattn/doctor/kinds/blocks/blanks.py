"""Tokens that a causal mask of a block leaves with nothing to look at.

They say NaN, and who they are tells which mask it was: of one without its
diagonal, it is the first; of one upside down, the last.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from selfattn.doctor.exercise import name_of
from selfattn.doctor.kinds import trial_calls
from selfattn.doctor.kinds.blocks.decoder import mistakes as decoder
from selfattn.doctor.kinds.layer.experiments import put
from selfattn.doctor.probes import Inputs

Look = Callable[[Any, Inputs], Tensor]


def sign(answer: Any, inputs: Inputs, look: Look) -> str:
    """The name of the causal mask that makes some tokens say NaN, if one does.

    Args:
        answer: the block.
        inputs: its texts.
        look: of a block and texts, which token moves with which.
    """
    said = trial_calls.outcome(put, answer, inputs)
    sees = trial_calls.outcome(look, answer, inputs)
    if not (isinstance(said, Tensor) and isinstance(sees, Tensor)):
        return ""
    blank = said.isnan().any(dim=-1).any(dim=0)
    if len(blank) != len(sees) or not blank.any() or blank.all():
        return ""
    clear = sees & ~blank[:, None]
    first, last = not blank[1:].any(), not blank[: -len(blank) // 2].any()
    whole_past = torch.ones_like(sees).tril() & ~blank[:, None]
    if first and clear.equal(whole_past):
        return name_of(decoder.not_itself)
    if last and clear.triu(1).any() and not clear.tril(-1).any():
        return name_of(decoder.only_the_future_is_seen)
    return ""
