"""How a block calls one of its parts: recorded, to be called so again."""

import copy
import inspect
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from functools import partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from selfattn.doctor.kinds import trial_calls
from selfattn.doctor.kinds.blocks.calling import as_wanted
from selfattn.doctor.kinds.blocks.told_names import needs
from selfattn.doctor.kinds.mask_meanings import MEANINGS, as_meant
from selfattn.doctor.patient import parameters
from selfattn.doctor.probes import numbers

BATCH, N, N_K = 2, 5, 7  # of the input on which it is recorded
MASKS = ("mask", "allowed", "bias", "visible", "seen")


class Roles(NamedTuple):
    """What each argument of a part is, by its name."""

    x: tuple[str, ...]  # the block's own tokens, normed or not
    context: tuple[str, ...]  # tokens of another length
    rest: dict[str, Any]  # all else, as it was
    mask: str | None  # where a mask goes, if anywhere
    turned: bool  # whether tokens come before the batch
    widths: dict[str, int]  # how wide each text is
    again: Callable[..., dict[str, Any]] | None = None  # for other tokens
    across: bool = False  # whether the block takes a context

    def of(self, *texts: Tensor) -> dict[str, Any]:
        """All that is neither tokens nor mask, as it goes with these tokens.

        Tables, such as of angles or of what is seen, are as long as they are.
        """
        fixed = not any(isinstance(x, Tensor) for x in self.rest.values())
        if fixed or self.again is None:
            return copy.copy(self.rest)
        given = self.again(*texts)
        return {name: given.get(name, x) for name, x in self.rest.items()}


def parts_called(
    parts: Iterable[nn.Module], call: Callable[..., Any], *given: Tensor
) -> list[nn.Module]:
    """Those of some parts that are called as something runs, in turn."""
    called: list[nn.Module] = []
    with ExitStack() as stack:
        for part in parts:
            hook = part.register_forward_hook(
                lambda module, x, y: called.append(module)
            )
            stack.callback(hook.remove)
        trial_calls.outcome(call, *given)
    return called


def recorded(
    part: nn.Module,
    call: Callable[..., object],
    d_model: int,
    across: bool,
    d_context: int | None = None,
) -> Roles:
    """The roles of a part's arguments; by their names if the block raises.

    Args:
        part: a module of the block's.
        call: calls the block with x, and with a context if ``across``.
        d_model: how wide x is.
        across: whether the block takes a context.
        d_context: how wide that is; None: as x is.
    """
    x = numbers(BATCH, N, d_model)
    wide = d_model if d_context is None else d_context
    others = (numbers(BATCH, N_K, wide, seed=1),) if across else ()
    again = partial(handed, part, call)
    given = again(x, *others)
    if not given:  # what a block cannot do is seen when it is asked
        return by_names(part)
    seen = roles(part, given)._replace(again=again, across=across)
    if seen.mask is None:
        heard = (x, *others)[-1].shape[1]
        mask = (torch.arange(heard) < heard - 1).expand(N, -1)
        changed = again(x, *others, mask=mask)
        return seen._replace(mask=mask_among(given, changed))
    return seen


def mask_among(given: dict[str, Any], changed: dict[str, Any]) -> str | None:
    """The name of what a part is handed, and otherwise where a mask is told;
    None if all is as it was.
    """
    names = [
        name
        for name, x in changed.items()
        if isinstance(x, Tensor) and not is_same(x, given.get(name))
    ]
    return next((n for n in names if not is_text(changed[n])), None)


def is_same(one: Tensor, other: Any) -> bool:
    """Whether a part is handed the same once more."""
    return isinstance(other, Tensor) and torch.equal(one, other)


def handed(
    part: nn.Module, call: Callable[..., object], *texts: Tensor, **more: Any
) -> dict[str, Any]:
    """What a block first hands to a part as it reads these; {} if nothing."""
    calls: list[dict[str, Any]] = []

    def note(module: nn.Module, args: Any, kwargs: Any) -> None:
        calls.append(bound(module, args, kwargs))

    hook = part.register_forward_pre_hook(note, with_kwargs=True)
    try:
        with torch.no_grad():
            call(*texts, **more)
    except Exception:
        pass
    finally:
        hook.remove()
    return calls[0] if calls else {}


def by_names(part: nn.Module) -> Roles:
    """What the arguments of a part that is never called may be."""
    listed = parameters(part)
    masks = [n for n in listed if any(word in n.lower() for word in MASKS)]
    mask = masks[0] if masks else None
    texts = [n for n in listed if needs(part, n) and n != mask]
    return Roles(tuple(texts), (), {}, mask, False, {})


def roles(part: nn.Module, given: dict[str, Any]) -> Roles:
    """What the arguments of one call were."""
    shapes = {n: tuple(x.shape) for n, x in given.items() if is_text(x)}
    turned = any(shape[0] in (N, N_K) for shape in shapes.values())
    long = {n: shape[0 if turned else 1] for n, shape in shapes.items()}
    own = tuple(n for n, length in long.items() if length == N)
    other = tuple(n for n, length in long.items() if length == N_K)
    rest = {n: x for n, x in given.items() if n not in shapes}
    listed = [n for n in parameters(part) if n not in shapes]
    masks = [n for n in listed if any(word in n.lower() for word in MASKS)]
    widths = {n: shape[-1] for n, shape in shapes.items()}
    mask = next(iter(masks), None)
    return Roles(own, other, rest, mask, turned, widths)


def bound(part: nn.Module, args: Any, kwargs: Any) -> dict[str, Any]:
    """What a part is called with, by its names where they are known.

    What has but a place among others has the number of that place.
    """
    try:
        found = inspect.signature(part.forward).bind(*args, **kwargs)
    except (TypeError, ValueError):
        return dict(kwargs)
    given: dict[str, Any] = {}
    for name, x in found.arguments.items():
        kind = found.signature.parameters[name].kind
        if kind is inspect.Parameter.VAR_POSITIONAL:
            given |= {f"{len(given) + i}": one for i, one in enumerate(x)}
        elif kind is inspect.Parameter.VAR_KEYWORD:
            given |= x
        else:
            given[name] = x
    return given


def called_with(part: Any, given: Mapping[str, Any]) -> Any:
    """What a part gives for what has a name, or the number of a place."""
    places = sorted(int(name) for name in given if name.isdecimal())
    if not places:
        return part(**given)
    before = parameters(part)[: places[0]]  # each has a place, too
    placed = [given[name] for name in (*before, *map(str, places))]
    named = {
        name: x
        for name, x in given.items()
        if not (name.isdecimal() or name in before)
    }
    return part(*placed, **named)


def is_text(x: object) -> bool:
    """Whether something is tokens: numbers with three axes."""
    return (
        isinstance(x, Tensor)
        and x.is_floating_point()
        and x.ndim == 3
        and {N, N_K} & {*x.shape[:2]} != set()
        and BATCH in x.shape[:2]
    )


def played(
    part: nn.Module, seen: Roles, meaning: str
) -> Callable[..., Tensor]:
    """A part as a function of x, a context and a mask of ours."""

    def attend(
        x: Tensor, context: Tensor | None = None, mask: Tensor | None = None
    ) -> Tensor:
        texts = dict.fromkeys(seen.x, x)
        texts |= dict.fromkeys(seen.context, x if context is None else context)
        if context is not None and not seen.context:
            others = seen.x[1:] or tuple(parameters(part)[1:2])
            texts |= dict.fromkeys(others, context)
        if seen.turned:
            texts = {n: t.transpose(0, 1) for n, t in texts.items()}
        other = x if context is None else context
        given = {**seen.of(x, *[other] * seen.across), **texts}
        masks = {}
        if seen.mask is not None:
            usual = given.pop(seen.mask, None)
            if mask is not None:
                masks = {seen.mask: as_meant(mask, meaning, x.dtype)}
            elif needs(part, seen.mask):
                # A decoder's own mask is what is asked after: None is none.
                given[seen.mask] = None if seen.across else usual

        def call(**masks: Any) -> Any:
            return called_with(part, {**given, **masks})

        output: Any = as_wanted(call, masks, len(x))
        output = output[0] if isinstance(output, tuple) else output
        return output.transpose(0, 1) if seen.turned else output

    return attend


def meaning_of(
    part: nn.Module, seen: Roles, told: str, d_model: int, across: bool
) -> str:
    """What a mask says to a part, by what the part then does not hear.

    A block may turn the mask that it is given before it hands it on, so that
    the part's meaning need not be the block's, ``told``, which is tried first
    and returned if no meaning fits.
    """
    wide = seen.widths.get(next(iter(seen.context), ""), d_model)
    x, context = numbers(BATCH, N, d_model), numbers(BATCH, N_K, wide)
    heard = context if across else x
    mask = torch.ones(N, heard.shape[1], dtype=torch.bool)
    mask[:, -1] = False
    for meaning in dict.fromkeys((told, *MEANINGS)):
        attend = played(part, seen, meaning)
        moved = []
        for changed in (-1, 0):
            other = heard.clone()
            other[:, changed] += 1
            try:
                with torch.no_grad():
                    outputs = [
                        attend(x, each, mask)
                        if across
                        else attend(each, None, mask)
                        for each in (heard, other)
                    ]
            except Exception:
                break  # another shape of mask, or another type
            unlike = (outputs[0] - outputs[1]).abs() > 1e-5
            moved.append(bool(unlike[:, 1:-1].any()))
        if moved == [False, True]:
            return meaning
    return told
