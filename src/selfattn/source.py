"""Show a chapter the very source that the tests run."""

import inspect
from collections.abc import Callable
from types import ModuleType

from IPython.display import Markdown

from selfattn.signatures import checked


@checked
def show_source(thing: Callable | type | ModuleType) -> Markdown:
    """The source of a function, class or module, as a Markdown code fence.

    Jupyter, Colab and the published page all show it alike, and since it is
    an output like any other, the comparison of outputs covers it: code on
    the page that is no longer the package's code fails the tests.

    Args:
        thing: what to show; docstring included.

    Raises:
        ValueError: if its source holds a code fence of its own, which would
            end ours early.

    >>> print(show_source(show_source).data.splitlines()[2])
    def show_source(thing: Callable | type | ModuleType) -> Markdown:
    """
    source = inspect.getsource(thing).rstrip()
    if "`" * 3 in source:
        raise ValueError(
            "source to be shown must hold no code fence, but that of "
            f"{thing.__name__} does"
        )
    fence = "`" * 3
    return Markdown(f"{fence}python\n{source}\n{fence}")
