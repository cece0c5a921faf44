"""Let no comparison in a cell compare nothing: a plugin of pytest.

    python -m pytest -p tools.verify.comparisons --nbval book/scaling.ipynb

A cell that ends in `assert_close(a, b)` proves nothing if a and b are zeros
altogether, or one tensor. In the kernels that nbval starts, such a comparison
raises where a cell makes it; what the package compares within is its own
affair. Who means zeros says so: ``assert not a.any()``. `allclose` and
`equal` may meet zeros, for they also serve to search.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
CELL = "ipykernel_"  # in the name of the file that a cell's code is in


def one(a: Any, b: Any) -> str:
    """Whether two tensors are one; or nothing.

    >>> import torch
    >>> one(x := torch.ones(3), x), one(x, torch.ones(3))
    ('both sides are one tensor', '')
    """
    import torch

    both = isinstance(a, torch.Tensor) and a is b
    return "both sides are one tensor" if both else ""


def empty(a: Any, b: Any) -> str:
    """Why comparing two tensors finds nothing out; or nothing.

    >>> import torch
    >>> zeros, ones = torch.zeros(3), torch.ones(3)
    >>> empty(zeros, torch.zeros(3))
    'both sides are zero'
    >>> empty(ones, ones)
    'both sides are one tensor'
    >>> empty(ones, torch.ones(3)), empty(zeros, ones)
    ('', '')
    """
    import torch

    if not (isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor)):
        return ""
    if why := one(a, b):
        return why
    dense = a.layout == b.layout == torch.strided and not a.is_meta
    if dense and a.dtype != torch.bool and not a.any() and not b.any():
        return "both sides are zero"
    return ""


def wary(
    compare: Callable[..., Any], find: Callable[[Any, Any], str]
) -> Callable[..., Any]:
    """The same comparison, which objects to what is found in a cell's."""

    def compared(a: Any, b: Any, *arguments: Any, **options: Any) -> Any:
        caller = sys._getframe(1).f_code.co_filename
        if CELL in caller and (why := find(a, b)):
            raise AssertionError(f"{compare.__name__}: {why}")
        return compare(a, b, *arguments, **options)

    return compared


def watch() -> None:
    """Make PyTorch's comparisons wary, in this process."""
    import torch
    import torch.testing

    torch.testing.assert_close = wary(torch.testing.assert_close, empty)
    torch.allclose = wary(torch.allclose, one)
    torch.equal = wary(torch.equal, one)


IN_A_KERNEL = f"""\
import sys
sys.path.insert(0, {str(ROOT)!r})
import tools.verify.comparisons
tools.verify.comparisons.watch()
del sys.path[0], sys, tools
"""


def with_watch(setup: Callable[[Any], None]) -> Callable[[Any], None]:
    """How nbval starts a notebook's kernel, and then what watches in it."""

    def started(notebook: Any) -> None:
        setup(notebook)
        kernel = notebook.kernel
        message = kernel.execute_cell_input(IN_A_KERNEL, allow_stdin=False)
        kernel.await_reply(message, timeout=60)
        kernel.await_idle(message, timeout=60)

    return started


def pytest_configure() -> None:
    """Take the place of nbval's start of a kernel."""
    from nbval import plugin

    plugin.IPyNbFile.setup = with_watch(plugin.IPyNbFile.setup)
