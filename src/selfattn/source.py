"""Show a chapter the very source that the tests run."""

import inspect
import tokenize
from collections.abc import Callable
from types import ModuleType

from IPython.display import Markdown

from selfattn.signatures import checked, shown


@checked
def show_source(thing: Callable | type | ModuleType) -> Markdown:
    """The source of a function, class or module, as a Markdown code fence.

    Jupyter, Colab and the published page all show it alike, and since it is
    an output like any other, the comparison of outputs covers it: code on
    the page that is no longer the package's code fails the tests.

    Args:
        thing: what to show; docstring included.

    Raises:
        ValueError: if it has no source in Python, as what is written in C;
            or if that holds a code fence, which would end ours early.

    >>> print(show_source(show_source).data.splitlines()[2])
    def show_source(thing: Callable | type | ModuleType) -> Markdown:
    """
    try:
        source = inspect.getsource(thing).rstrip()
    except (OSError, TypeError, ValueError, SyntaxError, tokenize.TokenError):
        raise ValueError(
            "thing must be a function, class or module that is written in "
            "Python, in a file or a cell, but no source is found of "
            f"{shown(thing)}"
        ) from None
    if "`" * 3 in source:
        raise ValueError(
            "source to be shown must hold no code fence, but that of "
            f"{thing.__name__} does"
        )
    fence = "`" * 3
    return Markdown(f"{fence}python\n{source}\n{fence}")
