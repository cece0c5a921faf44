"""Mismatches: layers within a layer that do not fit together, told in words.

Whoever puts another layer in the place of one, of another width or type,
hears of it where the numbers meet. That costs nothing as long as they fit.
"""

from collections.abc import Callable
from types import TracebackType
from typing import Any

from torch import Tensor, nn
from torch.nn.utils.parametrize import is_parametrized

from selfattn.wrapped import P, R, stands_for


class UnfilledError(ValueError):
    """A part of a layer was given numbers, and has none itself: somewhere in
    it, a weight is still on meta, as after a file that lacks it.
    """

    def __init__(self, part: nn.Module, weight: str, x: Tensor):
        """Of the part's own name nobody knows here; whoever has it does."""
        self.part, self.weight, self.place = part, weight, x.device
        super().__init__(self.told(type(part).__name__))

    def told(self, name: str) -> str:
        """What is missing where, by the name of the part."""
        owner, _, own = f"{name}.{self.weight}".strip(".").rpartition(".")
        its = f"its {own}" if owner else "it"
        return (
            f"{owner or own} must be where x is, on {self.place}, but {its} "
            "is on meta"
        )


# What PyTorch says of numbers that do not fit each other. Its errors have no
# other mark; where it words one anew, that error is passed on as it is.
MISMATCH_WORDS = (
    *("same dtype", "same data type", "scalar type", "input dtype"),
    *("must match the size", "shapes cannot be multiplied", "to have size"),
    *("Expected size for", "number of dimensions", "has to have same"),
    *("channels", "normalized_shape", "input.size(-1)", "must match except"),
    *("expected input", "not broadcastable", "is invalid for input"),
)
WIDTHS = ("in_features", "in_channels", "input_size", "normalized_shape")


def telling(method: Callable[P, R]) -> Callable[P, R]:
    """The method of a layer; what does not fit in the layer, it tells."""

    @stands_for(method)
    def told(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return method(*args, **kwargs)
        except (RuntimeError, ValueError) as error:
            layer = args[0]
            found = isinstance(layer, nn.Module) and mismatch(layer, error)
            if not found:
                raise
            raise found from None

    return told


def mismatch(layer: nn.Module, error: Exception) -> ValueError | None:
    """What does not fit in a layer, if an error of PyTorch's says so.

    >>> import torch
    >>> from selfattn.layers import FeedForward
    >>> layer = FeedForward(4, 16)
    >>> layer.W_out = nn.Linear(8, 4)
    >>> layer(torch.zeros(2, 4))
    Traceback (most recent call last):
    ValueError: W_out must be given 8 features of torch.float32, but it was \
given (2, 16) of torch.float32
    """
    if isinstance(error, UnfilledError):
        names = {id(part): name for name, part in layer.named_modules()}
        name = names.get(id(error.part))
        return None if name is None else ValueError(error.told(name))
    if not any(words in str(error) for words in MISMATCH_WORDS):
        return None
    frames = [*frames_of(error.__traceback__)]
    last = frames[-1][0]
    if last.startswith("torch.nn."):
        return mismatch_of_part(layer, frames)
    if last.startswith("selfattn.") and isinstance(error, RuntimeError):
        return mismatch_of_all(layer)
    return None


def frames_of(traceback: TracebackType | None) -> Any:
    """Of each call on the way to an error, its module and its names."""
    while traceback is not None:
        frame = traceback.tb_frame
        yield frame.f_globals.get("__name__", ""), frame.f_locals
        traceback = traceback.tb_next


def check_filled(part: nn.Module, x: Tensor) -> None:
    """Raise unless all weights of a part hold numbers, if x does: of a matrix
    on meta PyTorch makes whatever lies in memory, and says nothing.

    >>> import torch
    >>> from selfattn.layers import FeedForward
    >>> layer = FeedForward(4, 16)
    >>> layer.W_out = layer.W_out.to("meta")
    >>> layer(torch.zeros(2, 4))
    Traceback (most recent call last):
    ValueError: W_out must be where x is, on cpu, but its weight is on meta
    """
    if x.is_meta:
        return
    empty = first_on_meta(part)
    if empty is not None:
        raise UnfilledError(part, empty, x)


def first_on_meta(part: nn.Module) -> str | None:
    """The name of the first weight that is there; none if none is.

    It is asked at every call. `named_parameters` would take longer by far.
    """
    for own in (part._parameters, part._buffers):
        for name, weight in own.items():
            if weight is not None and weight.is_meta:
                return name
    for name, inner in part._modules.items():
        empty = None if inner is None else first_on_meta(inner)
        if empty is not None:
            return f"{name}.{empty}"
    return None


def mismatch_of_part(layer: nn.Module, frames: list) -> ValueError | None:
    """What a layer of PyTorch's within this layer was given, and takes."""
    names = {id(part): name for name, part in layer.named_modules()}
    for _, known in reversed(frames):
        part, x = known.get("self"), known.get("input")
        if id(part) in names and isinstance(x, Tensor):
            name = names[id(part)] or type(part).__name__
            widths = (getattr(part, takes, None) for takes in WIDTHS)
            width = next((w for w in widths if w is not None), None)
            takes = "what fits it" if width is None else f"{width} features"
            weight = next(part.parameters(), None)
            kind = "" if weight is None else f" of {weight.dtype}"
            return ValueError(
                f"{name} must be given {takes}{kind}, but it was given "
                f"{tuple(x.shape)} of {x.dtype}"
            )
    return None


def mismatch_of_all(layer: nn.Module) -> ValueError | None:
    """The weights of a layer that do not fit each other."""
    weights = [
        f"{name} is {tuple(x.shape)} of {x.dtype}"
        for name, x in layer.named_parameters()
    ]
    if not weights:
        return None
    return ValueError(
        f"the weights of {type(layer).__name__} must fit each other, but "
        f"{', '.join(weights)}"
    )


def weights_to_meet(layer: nn.Module | Tensor) -> list[Tensor]:
    """The weights that tell what a layer takes: of PyTorch's own, the first.

    None, if somebody's layer has whole numbers or numbers of one byte: it
    makes those of x from them, of whatever type that is; and so may a
    parametrisation that is called unsafe, of numbers of another type.
    """
    if isinstance(layer, Tensor):
        return [layer]
    made: Any = layer.parametrizations if is_parametrized(layer) else {}
    if any(one.unsafe for one in made.values()):
        return []
    weights = list(layer.parameters())
    if type(layer).__module__.startswith("torch."):
        return weights[:1]
    plain = all(w.is_floating_point() and w.itemsize > 1 for w in weights)
    return weights if plain else []
