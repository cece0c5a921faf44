"""Bound: a function with options of its own, some of which are trained.

`functools.partial` keeps what it binds to itself: a layer that is handed one
would neither move nor save nor train the parameters in it.
"""

import inspect
import sys
from collections.abc import Mapping
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
        # No dictionaries of PyTorch's, to which "keys" would be no name.
        self.parts, self.learned = nn.Module(), nn.Module()
        self.others: dict[str, Any] = {}
        self.names: list[str] = []  # of what is learned
        places = {str(i): x for i, x in enumerate(made.args)}
        for name, x in {**places, **made.keywords}.items():
            x = owned(x)
            if is_own(x):
                check_name(name)
            if isinstance(x, nn.Module):
                self.parts.register_module(name, x)
            elif isinstance(x, nn.Parameter):
                self.learned.register_parameter(name, x)
                self.names.append(name)
            else:
                self.others[name] = x

    @property
    def everything(self) -> dict[str, Any]:
        """All that is bound, by name or by the number of its place."""
        # Each by its name: one that is made anew, as by pruning, or copied
        # for another GPU, is no longer among PyTorch's parameters.
        learned = {name: getattr(self.learned, name) for name in self.names}
        return {**self.others, **self.parts._modules, **learned}

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


class Owner(nn.Module):
    """A module with functions of somebody's. What each has bound is the
    module's own; and whenever one is set, it may take a module's place, which
    PyTorch refuses to a function.

    >>> class Bent(Owner):
    ...     OWNED = ("bend",)
    >>> bent = Bent()
    >>> bent.bend = nn.ReLU()
    >>> bent.bend = abs
    >>> bent.bend(-2), [*bent.children()]
    (2, [])
    """

    OWNED: tuple[str, ...] = ()

    def __setattr__(self, name: str, x: Any) -> None:
        """Keep what is set, as `owned` has it where it is one of these."""
        if name in self.OWNED:
            self._modules.pop(name, None)
            x = owned(x)
        super().__setattr__(name, x)


def check_name(name: str) -> None:
    """Raise unless a module can keep something by this name."""
    if not name or "." in name or hasattr(nn.Module, name):
        raise ValueError(
            "a parameter or a module must be bound by a name that no module "
            f"has for itself, but it is {name!r}; bind another function to it"
        )


def owned(function: Any) -> Any:
    """A function as a layer is to keep it: a `functools.partial` that binds
    modules or parameters as a `Bound` of them, and all else as it is.

    Raises:
        ValueError: if they are bound by a name that no module can keep, or in
            a list, where none would find them.
    """
    if not isinstance(function, partial):
        return function
    given = (*function.args, *function.keywords.values())
    for x in given:
        inside = x.values() if isinstance(x, dict) else x
        if isinstance(x, tuple | list | dict) and any(map(is_own, inside)):
            raise ValueError(
                "parameters and modules must be bound one by one, or within a "
                f"module, but they are bound in a {type(x).__name__}"
            )
    if any(is_own(x) for x in (function.func, *map(owned, given))):
        return Bound(function)
    return function


def unbound(function: Any) -> tuple[Any, dict[str, Any]]:
    """A function without what is bound to it, and what that is by name.

    >>> unbound(partial(partial(max, key=abs), default=0))
    (<built-in function max>, {'key': <built-in function abs>, 'default': 0})
    """
    keywords: dict[str, Any] = {}
    while isinstance(function, partial | Bound):
        keywords = {**function.keywords, **keywords}
        function = function.func
    return function, keywords


def is_of_the_book(function: Any) -> bool:
    """Whether a function or a module is this package's, so that one knows
    what it does; what only bears its name, as a wrapper does, is not.

    >>> is_of_the_book(unbound), is_of_the_book(max)
    (True, False)
    """
    made = function if hasattr(function, "__qualname__") else type(function)
    home = str(made.__module__)
    if home.partition(".")[0] != "selfattn":
        return False
    return getattr(sys.modules[home], made.__qualname__, None) is made


def check_keeps(layer: Any, grows: bool) -> None:
    """Raise if keys and values of a layer cannot be kept, or not be added to
    where what is kept ``grows``.
    """
    if layer.rotate is not None:
        check_rotation(layer)
    if grows:
        check_growth(layer.attend)


def check_rotation(layer: Any) -> None:
    """Raise if the tokens are shared out to ranks, each of which would rotate
    its own from position 0; somebody's own rotation may know where it is.
    """
    attend, bound = unbound(layer.attend)
    count = getattr(attend, "n_ranks", None)
    if count is None or not is_of_the_book(attend):
        return
    rotation, _ = unbound(layer.rotate)
    ranks = count(bound.get("group"))
    if ranks > 1 and is_of_the_book(rotation):
        raise ValueError(
            "rotate must add the position of a rank's first token, as lambda "
            "x, offset: rope(x, offset=first + offset) does, but attend is "
            f"of {ranks} ranks and rotate={layer.rotate}"
        )


def check_growth(attend: Any) -> None:
    """Raise if a mechanism of the book was left to choose by the length of
    each call: where a text grows, what was kept was made by other choices.
    """
    function, bound = unbound(attend)
    name = getattr(function, "by_length", None)
    if name is None or not is_of_the_book(function):
        return
    if bound.get(name) is None:
        raise ValueError(
            f"{name} must be bound where keys and values are kept of a text "
            f"that grows, as partial({function.__name__}, {name}=8) does: "
            "else the length of each call decides, and what was kept was made "
            f"by another; but attend={attend}"
        )


def is_own(x: object) -> bool:
    """Whether it is, or has, what a layer is to move, save and train."""
    return isinstance(x, nn.Module | nn.Parameter)


def takes(function: Any, *names: str) -> bool:
    """Whether a function or a module takes these by name, or any name; or
    whether nobody can tell.

    PyTorch's own function takes none of ours: its mask is ``attn_mask``.

    >>> takes(lambda q, k, v, *, mask: v, "mask"), takes(max, "mask")
    (True, False)
    """
    parameters = parameters_of(function)
    if parameters is None:
        return not inspect.isbuiltin(unbound(function)[0])
    if any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        return True
    return parameters.keys() >= set(names)


def parameters_of(function: Any) -> Mapping[str, inspect.Parameter] | None:
    """What a function, or a module's ``forward``, takes, if one can tell."""
    try:
        called = getattr(function, "forward", function)
        return inspect.signature(called).parameters
    except ValueError:  # not written in Python
        return None
