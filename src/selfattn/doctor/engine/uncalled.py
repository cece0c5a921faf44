"""Whether Python called a thing at all, or refused what it was handed.

Of one that was never called nothing is known, but that it takes other
arguments; who was called, and calls another wrongly, is at fault himself.
"""

import functools
import inspect
import traceback
from typing import Any

from selfattn.doctor.patient import Patient


def refused_arguments(answer: Any, error: BaseException) -> bool:
    """Whether Python raised this in place of calling an answer.

    Python names whom it could not call. As there may be another of that name
    within, what the answer runs must not be on the way to the error.
    """
    if type(error) is not TypeError or not error.args:
        return False
    runs = what_runs(answer.thing if isinstance(answer, Patient) else answer)
    named = str(error.args[0]).partition("(")[0].rpartition(".")[2]
    if named != getattr(runs, "__name__", ""):
        return False
    code = getattr(runs, "__code__", None)
    frames = traceback.walk_tb(error.__traceback__)
    return all(frame.f_code is not code for frame, _ in frames)


def what_runs(thing: Any) -> Any:
    """The function that runs when a thing is called, without its wrappers."""
    while isinstance(thing, functools.partial):
        thing = thing.func
    if inspect.isroutine(thing):
        return inspect.unwrap(thing)
    called = getattr(type(thing), "forward", None) or type(thing).__call__
    return inspect.unwrap(called)
