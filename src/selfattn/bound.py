"""Bound: a function with options of its own, some of which are trained.

`functools.partial` keeps what it binds to itself: a layer that is handed one
would neither move nor save nor train the parameters in it.
"""

from functools import partial
from typing import Any

from torch import nn


class Bound(nn.Module):
    """What a `functools.partial` does, as a module that has its parameters.

    Args:
        made: a function or a module with what is bound to it; modules and
            parameters among that are this module's own.

    >>> import torch
    >>> add = Bound(partial(torch.add, other=nn.Parameter(torch.ones(2))))
    >>> [name for name, _ in add.named_parameters()]
    ['learned.other']
    """

    def __init__(self, made: partial):
        """Sort what is bound: what has parameters, what is one, the rest."""
        super().__init__()
        self.func = made.func
        self.parts, self.learned = nn.ModuleDict(), nn.ParameterDict()
        self.others: dict[str, Any] = {}
        places = {str(i): x for i, x in enumerate(made.args)}
        for name, x in {**places, **made.keywords}.items():
            if isinstance(x, nn.Module):
                self.parts[name] = x
            elif isinstance(x, nn.Parameter):
                self.learned[name] = x
            else:
                self.others[name] = x

    @property
    def everything(self) -> dict[str, Any]:
        """All that is bound, by name or by the number of its place."""
        return {**self.others, **self.parts, **self.learned}

    @property
    def args(self) -> tuple[Any, ...]:
        """What is bound by place, as of a `functools.partial`."""
        found = self.everything
        places = sorted(int(name) for name in found if name.isdecimal())
        return tuple(found[str(place)] for place in places)

    @property
    def keywords(self) -> dict[str, Any]:
        """What is bound by name, likewise."""
        named = self.everything.items()
        return {name: x for name, x in named if not name.isdecimal()}

    def forward(self, *args: Any, **keywords: Any) -> Any:
        """Call the function with what is bound, and with this."""
        return self.func(*self.args, *args, **{**self.keywords, **keywords})


def owned(function: Any) -> Any:
    """A function as a layer is to keep it: a `functools.partial` that binds
    modules or parameters as a `Bound` of them, and all else as it is.
    """
    if not isinstance(function, partial):
        return function
    bound = function.func, *function.args, *function.keywords.values()
    if any(isinstance(x, nn.Module | nn.Parameter) for x in bound):
        return Bound(function)
    return function
