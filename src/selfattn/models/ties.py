"""Ties: a matrix of scores that is the table of an embedding, and stays it.

PyTorch makes two of a parameter that is in two places when a model goes to
another device by way of "meta", and when numbers are assigned to it, also
within a larger model.
"""

from typing import Any
from weakref import WeakKeyDictionary, WeakSet

import torch
from torch import Tensor, nn

from selfattn.bound import Owner
from selfattn.models.weights import same

TIED = (
    "they are one table here, but they differ; with assign=True they become "
    "two, as tied=False makes them"
)


class Held(Owner):
    """A part with a table that models score with: they do so with the next
    one when it gets another, as within a larger model that has this part
    under a name of its own.
    """

    def __init__(self) -> None:
        """Have what is loaded looked at, before and afterwards."""
        super().__init__()
        self.register_load_state_dict_pre_hook(before_loading)
        self.register_load_state_dict_post_hook(after_loading)

    def _apply(self, fn: Any, recurse: bool = True) -> "Held":
        """Move or cast all numbers; who scored with the table still does."""
        models = who_score_with(self)
        super()._apply(fn, recurse)
        for model in models:
            tie(model)
        return self


HOLDERS: WeakKeyDictionary[nn.Module, WeakSet["Tied"]] = WeakKeyDictionary()
SCORED: WeakKeyDictionary[nn.Module, WeakSet["Tied"]] = WeakKeyDictionary()


def who_score_with(part: nn.Module) -> list["Tied"]:
    """The models whose scores are made with the table of a part."""
    return [model for model in HOLDERS.get(part, ()) if model.is_one()]


def before_loading(part: nn.Module, *_: Any) -> None:
    """Note who scores with the table that is to be loaded."""
    SCORED[part] = WeakSet(who_score_with(part))


def after_loading(part: nn.Module, _: Any) -> None:
    """Have them score with what was loaded."""
    for model in SCORED.pop(part, ()):
        tie(model)


class Tied(Owner):
    """A model whose scores may be made with the table of its embedding."""

    AT_SCORES: str  # where the matrix of the scores is, and the embedding's
    AT_TABLE: str

    def __init__(self) -> None:
        """Have what is loaded looked at when all parts have it."""
        super().__init__()
        self.given = (True, True)
        self.register_load_state_dict_post_hook(one_again)

    def __setattr__(self, name: str, x: Any) -> None:
        """Set a part, and be known to the one that has the table."""
        super().__setattr__(name, x)
        if isinstance(x, nn.Module):
            hold(self)

    def __setstate__(self, state: Any) -> None:
        """Be known to it as a copy, too."""
        super().__setstate__(state)
        hold(self)

    def is_one(self) -> bool:
        """Whether the scores are made with the table of the embedding."""
        table = weight_of(part_at(self, self.AT_TABLE))
        scores = weight_of(part_at(self, self.AT_SCORES))
        return table is not None and scores is table

    def _keep_table(self) -> None:
        """Keep the part with the table, though another part loses it."""

    def _apply(self, fn: Any, recurse: bool = True) -> "Tied":
        """Move or cast all numbers; what was one table is one afterwards."""
        note(self, fn)
        super()._apply(fn, recurse)
        for model in who_shared(self):
            tie(model)
        return self

    def _load_from_state_dict(self, numbers: Any, prefix: str, *more: Any):
        """Note, before any part is loaded, whether two of them are one."""
        paths = [self.AT_SCORES, *self.names_of_table()]
        given = [f"{prefix}{path}.weight" for path in paths]
        scores, *tables = (name in numbers for name in given)
        self.given = scores, any(tables)
        *_, missing, _, errors = more  # lists that all parts are handed
        note(self, missing)
        if self.is_one() and not more[0].get("assign_to_params_buffers"):
            errors += unlike({n: numbers[n] for n in given if n in numbers})
        super()._load_from_state_dict(numbers, prefix, *more)

    def names_of_table(self) -> list[str]:
        """By which the embedding's table is found: a part may have several,
        of which those who write each parameter once write the first.
        """
        table = part_at(self, self.AT_TABLE)
        parts = self.named_modules(remove_duplicate=False)
        others = [name for name, part in parts if part is table]
        return [*dict.fromkeys([self.AT_TABLE, *others])]


def hold(model: Tied) -> None:
    """Make a model known to the part that has the table."""
    part = part_at(model, model.AT_TABLE.rpartition(".")[0])
    if isinstance(part, nn.Module):
        HOLDERS.setdefault(part, WeakSet()).add(model)


def let_keep(part: Any) -> None:
    """Have the models that look up in a part keep it, if another loses it."""
    for model in HOLDERS.get(part, ()) if part is not None else ():
        model._keep_table()


class Note:
    """A table before a call on all parts, and the models that score with it:
    the first to have its turn gives another one to those they share it with.
    """

    def __init__(self, call: Any, table: Tensor):
        """Remember the table by its number: PyTorch swaps no tensor that is
        referred to weakly.
        """
        self.call, self.table = call, id(table)
        self.models: WeakSet[Tied] = WeakSet()


NOTES: WeakKeyDictionary[nn.Module, Note] = WeakKeyDictionary()


def note(model: Tied, call: Any) -> None:
    """Write down whether a model scores with a table that is to be changed."""
    part = part_at(model, model.AT_TABLE)
    table = weight_of(part)
    if part is None or table is None:
        return
    known = NOTES.get(part)
    if known is None or known.call is not call or model in known.models:
        known = NOTES[part] = Note(call, table)
    scores = weight_of(part_at(model, model.AT_SCORES))
    if scores is table or id(scores) == known.table:
        known.models.add(model)


def who_shared(model: Tied) -> list[Tied]:
    """The models that had one table, if this one is among them."""
    known = NOTES.get(part_at(model, model.AT_TABLE))
    return [*known.models] if known and model in known.models else []


def one_again(model: Tied, _: Any) -> None:
    """Make one table of two that were one, unless other numbers came in."""
    for one in who_shared(model):
        scores = part_at(one, one.AT_SCORES)
        table = part_at(one, one.AT_TABLE)
        if one is model and one.given == (True, False):
            table.weight = scores.weight
        elif (one is model and one.given == (False, True)) or agree(
            scores.weight, table.weight
        ):
            tie(one)


def tie(model: Tied) -> None:
    """Have a model score with the table of its embedding."""
    table = part_at(model, model.AT_TABLE)
    part_at(model, model.AT_SCORES).weight = table.weight


def by_one_name(numbers: Any, second: str, first: str) -> list[str]:
    """Rename numbers of a part that had two names, in place, to the first;
    and what is wrong with them.
    """
    errors = []
    for name in [n for n in numbers if n.startswith(second)]:
        one = first + name.removeprefix(second)
        given = {one: numbers.setdefault(one, numbers[name])}
        given[name] = numbers.pop(name)
        errors += unlike(given, "they are one embedding's, but they differ")
    return errors


def unlike(given: dict[str, Any], why: str = TIED) -> list[str]:
    """What is wrong with numbers that are to be copied into one table, as
    PyTorch says it: of those that differ, the last would be all that is left.
    """
    numbers = {name: x for name, x in given.items() if isinstance(x, Tensor)}
    first = next(iter(numbers), "")
    return [
        f"{first} and {name} must be alike, for {why}"
        for name, x in numbers.items()
        if x.shape == numbers[first].shape and not agree(numbers[first], x)
    ]


def agree(one: Tensor, other: Tensor) -> bool:
    """Whether two tables are alike; without numbers, they are."""
    if one is other:
        return True
    if (one.device, one.dtype) != (other.device, other.dtype):
        return False
    return one.is_meta or torch.equal(one, other) or same(one, other)


def part_at(model: Any, path: str) -> Any:
    """A part of a model; None where it has another one there."""
    for name in path.split("."):
        model = getattr(model, name, None)
    return model


def weight_of(part: Any) -> nn.Parameter | None:
    """The matrix of a part that has one of its own."""
    # Not by its name: a parametrisation may give back what it was given.
    return getattr(part, "_parameters", {}).get("weight")
