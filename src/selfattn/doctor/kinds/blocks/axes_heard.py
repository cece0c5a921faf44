"""In which axes a block takes texts, and whom its tokens hear, by calls."""

import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from selfattn.doctor.kind import Kind
from selfattn.doctor.kinds import trial_calls
from selfattn.doctor.kinds.blocks import past_seen, properties
from selfattn.doctor.kinds.blocks.hearing import of_itself
from selfattn.doctor.kinds.layer.experiments import (
    which_sequences_meet,
    who_sees_whom,
)
from selfattn.doctor.kinds.text_layouts import tried
from selfattn.doctor.patient import Facts
from selfattn.doctor.probes import Inputs

NBD = "NBD"
Call = Callable[..., Any]


def layouts_of(kind: Kind, block: Any, known: Facts) -> list[str]:
    """The layouts in which it takes texts, and tokens hear of others.

    A module in which they do in none is no block. Where they do in one, and
    no text hears of another, the axes are those of that one.
    """
    calls = {
        layout: kind.adapt(block, {**known, "layout": layout})
        for layout in tried(known.get("layout"))
    }
    mixing = [n for n, call in calls.items() if mixes(block, call)]
    apart = [n for n in mixing if keeps_apart(block, calls[n])]
    return apart[:1] or mixing


def is_called(kind: Kind, block: Any, known: Facts) -> bool:
    """Whether it takes texts in any layout."""
    return any(
        given_to(block, kind.adapt(block, {**known, "layout": layout}))
        for layout in tried(known.get("layout"))
    )


def keeps_apart(block: nn.Module, call: Call) -> bool:
    """Whether tokens hear of others of their own text, and of no other."""
    given = given_to(block, call)
    met = trial_calls.outcome(which_sequences_meet, call, given)
    own = trial_calls.outcome(of_itself, call, given)
    if not (isinstance(met, Tensor) and isinstance(own, Tensor)):
        return False
    return hears_others(own) and not hears_others(met)


def hears_others(table: Tensor) -> bool:
    """Whether something hears of anything else, in a table of who does."""
    return bool((table & ~torch.eye(len(table), dtype=torch.bool)).any())


def sees_all(kind: Kind, block: Any, known: Facts) -> bool:
    """Whether one that reads a context sees all of its own text, too."""
    call = kind.adapt(block, known)
    given = given_to(block, call)
    if given is None or "context" not in given:
        return False
    widths = [text.shape[-1] for text in given.values()]
    told = "own_mask" in known  # then nothing is hidden but what is handed
    return not told and past_seen.seen_past(call, *widths) is False


def given_to(block: nn.Module, call: Call) -> Inputs | None:
    """Texts that a block takes; None if it takes none."""
    across = "context" in inspect.signature(call).parameters
    wide = trial_calls.outcome(properties.widths, block, call, across)
    return None if wide is None else properties.texts(*wide)


def mixes(block: nn.Module, call: Call) -> bool:
    """Whether tokens hear of others in a block, or of another text."""
    given = given_to(block, call)
    if given is None:
        return False
    tables = [
        trial_calls.outcome(one, call, given)
        for one in (of_itself, who_sees_whom)
    ]
    if not all(isinstance(table, Tensor) for table in tables):
        return False
    own, seen = tables
    return hears_others(own) or ("context" in given and bool(seen.any()))
