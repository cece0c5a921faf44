"""A call that is made to see what becomes of it, before anything is asked."""

import contextlib
import copy
import io
import warnings
from collections.abc import Callable
from typing import Any

import torch


def outcome(call: Callable[..., Any], *given: Any, **named: Any) -> Any:
    """What a call returns; None if it raises, which is for probes to say.

    What it prints, warns of and draws at random stays in here.
    """
    with (
        torch.random.fork_rng(devices=[]),
        torch.no_grad(),
        warnings.catch_warnings(),
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
    ):
        warnings.simplefilter("ignore")
        try:
            return call(*given, **named)
        except Exception:
            return None


def alone(thing: Any) -> Any:
    """A copy of a thing, for calls that may change it; else the thing."""
    made = outcome(copy.deepcopy, thing)
    return thing if made is None else made
