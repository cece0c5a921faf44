"""What a file or module holds, as far as a doctor is concerned."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from types import ModuleType
from typing import Any, Self

from selfattn.doctor.door.guessing import Guess, guess
from selfattn.doctor.door.things import things_in
from selfattn.doctor.engine.isolation import Stage, Watch, can_fork, in_a_child
from selfattn.doctor.engine.modes import no_modes
from selfattn.doctor.engine.originals import known, replaced
from selfattn.doctor.engine.outcome import in_words


@dataclass(frozen=True)
class Survey:
    """What was found: a guess for each thing, or why there is none."""

    guesses: tuple[Guess, ...] = ()
    trouble: str = ""

    def with_(self, **changes: Any) -> Self:
        """The same, with something changed."""
        return replace(self, **changes)

    def portable(self) -> Self:
        """The same: there are but words in it."""
        return self


def survey(
    make: Callable[[Watch], Any],
    name: str,
    time_limit: float,
    memory_limit: float | None,
) -> Survey:
    """Guess the kind of a thing, or of each thing that a module makes.

    Args:
        make: imports the module, or the thing itself.
        name: what a thing is called; what a module holds has names.
        time_limit: seconds, as for `examine`.
        memory_limit: bytes, as for `examine`.
    """

    def work(watch: Watch) -> Survey:
        originals = known()
        found = make(watch)
        if words := replaced(originals):
            return Survey(trouble=words)
        watch(Stage("while its kind was guessed"))
        with no_modes():
            return Survey(tuple(guesses_of(found, name)))

    if can_fork():
        return in_a_child(work, Survey(), time_limit, memory_limit)
    try:
        return work(lambda at: None)
    except (Exception, SystemExit) as error:
        return Survey(trouble=f"It raises {in_words(error)}.")


def guesses_of(found: Any, name: str) -> list[Guess]:
    """A guess for a thing, or for each of those that a module makes."""
    if not issubclass(type(found), ModuleType):
        return [looked_at(found, name)]
    return [
        looked_at(thing, named)._replace(used_by=used_by)
        for named, thing, used_by in things_in(found)
    ]


def looked_at(thing: Any, name: str) -> Guess:
    """A guess, or why there is none: of one thing, and not of all others."""
    try:
        return guess(thing, name)
    except (Exception, SystemExit) as error:
        raised = in_words(error)
        return Guess(name, "", f"as I looked at it, it raised {raised}")
