"""Norms whose features do not come last, called with tokens as others are."""

from collections.abc import Callable
from typing import Any

from torch import Tensor

from selfattn.doctor.kinds.text_layouts import laid_out, read_back

Call = Callable[..., Any]


def laid_out_for(norm: Call, layout: str) -> Call:
    """A norm of pictures, called with tokens of any axes."""

    def called(x: Tensor, *others: Any, **named: Any) -> Any:
        text = x.reshape(len(x) if x.ndim > 2 else 1, -1, x.shape[-1])
        made = norm(laid_out(text, layout), *others, **named)
        if not isinstance(made, Tensor):
            return made
        back = read_back(made, layout)
        return back.reshape(x.shape) if back.shape == text.shape else made

    return called
