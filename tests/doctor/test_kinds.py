"""The banks of all kinds: every mistake is caught, and called by its name.

The kinds are tested all alike: one more of them needs no more tests.
"""

import importlib
import json
import pkgutil
import re
import sys
from pathlib import Path

import pytest
import torch

from selfattn.doctor import complaints, examine
from selfattn.doctor.exercise import Exercise, Mistake
from selfattn.doctor.exercises import find, names
from selfattn.doctor.kind import Fact, Kind, Reading
from selfattn.doctor.kinds import __name__ as package
from selfattn.doctor.kinds import __path__ as folder
from selfattn.doctor.kinds import find_kind, kinds
from selfattn.doctor.self_test import banks, names_given
from selfattn.measurements import measured

BOOK = Path(__file__).parents[2] / "book"
BANKS = banks()
HEALTHY = [
    (name, label, thing, said)
    for name, kind in kinds().items()
    for label, (thing, said) in kind.examples().items()
    if thing is not None
]


@pytest.mark.parametrize("name", BANKS)
def test_every_mistake_is_caught_and_called_by_its_name(name):
    assert complaints(BANKS[name]) == []


@pytest.mark.parametrize("name", BANKS)
def test_a_kind_knows_ten_mistakes_and_says_where_each_is_explained(name):
    known = BANKS[name].mistakes
    told = {}  # of one name, in two forms, the same is told
    for mistake in known:
        words = mistake.symptom, mistake.chapter
        assert told.setdefault(mistake.name, words) == words
    assert len(told) >= 10
    for mistake in known:
        assert mistake.chapter, mistake
        assert not mistake.thread or mistake.thread.startswith("https://")


def headings(page):
    """The headings of a page of the book, as the anchors that they make."""
    file = next(BOOK.rglob(f"{page}.*"))
    text = file.read_text("utf-8")
    if file.suffix == ".ipynb":
        cells = json.loads(text)["cells"]
        written = [c for c in cells if c["cell_type"] == "markdown"]
        text = "\n\n".join("".join(cell["source"]) for cell in written)
    text = text.replace(" (second reading)", "")
    lines = re.findall(r"^#+ (.*)$", text.lower(), re.M)
    return {re.sub(r"[^a-z0-9]+", "-", line).strip("-") for line in lines}


def pointers():
    """Every place in the book to which a mistake sends its reader."""
    exercises = [*BANKS.values(), *(find(name) for name in names())]
    listed = [m for exercise in exercises for m in exercise.mistakes]
    return sorted({mistake.chapter for mistake in listed})


@pytest.mark.parametrize("chapter", pointers())
def test_where_a_mistake_is_explained_there_is_a_page_and_a_section(chapter):
    page, _, section = chapter.partition("#")
    contents = (BOOK.parent / "_toc.yml").read_text()
    assert re.search(rf"- file: book/(\w+/)?{page}\n", contents)
    assert not section or section in headings(page)


def test_masking_after_softmax_is_explained_where_masks_are():
    places = {
        mistake.chapter
        for bank in BANKS.values()
        for mistake in bank.mistakes
        if mistake.name.startswith("mask after softmax")
    }
    assert places == {"masks#masking-too-late"}


def test_all_kinds_together_know_150_mistakes():
    names = {
        (name.partition(",")[0], mistake.name)
        for name, bank in BANKS.items()
        for mistake in bank.mistakes
    }
    assert len(names) >= 150


def test_the_table_in_the_book_is_the_one_that_comes_out():
    """That each is called by its name, the tests above have shown."""
    table = measured("doctor-confusion")
    assert table["names"] == {
        name: {mistake.name: mistake.name for mistake in bank.mistakes}
        for name, bank in BANKS.items()
    }
    assert table["mistakes"] == table["named_right"]
    assert table["command"] == "python -m tools.measure.doctor.confusion"


def test_a_mistake_that_escapes_would_be_seen():
    bank = BANKS["softmax"]
    right = Mistake("nothing wrong", bank.solution, "It.", "Is.", "Not.")
    spoilt = Exercise(
        "softmax", bank.asks, bank.solution, bank.probes, mistakes=(right,)
    )
    assert names_given(spoilt) == {"nothing wrong": "(passed)"}


@pytest.mark.parametrize("name", BANKS)
def test_every_probe_can_be_made_small_and_says_what_it_needs(name):
    bank = BANKS[name]
    for probe in bank.probes:
        assert {*probe.needs} <= {*bank.optional}, probe.claim
        assert not probe.convention or probe.convention in bank.conventions
        axes = [axis for axis in probe.axes() if axis not in probe.fixed]
        probe.make(**dict.fromkeys(axes, 1))
    for ways in bank.conventions.values():
        first, *others = ways.values()
        assert first is None
        assert {*others} <= {*bank.mistakes}


def test_a_kind_is_found_under_its_name_and_no_other():
    held = {
        thing.name
        for module in pkgutil.walk_packages(folder, f"{package}.")
        for thing in vars(importlib.import_module(module.name)).values()
        if isinstance(thing, Kind)
    }
    assert held == {*kinds()} and {"attention", "efficient"} <= held
    assert all(find_kind(name).name == name for name in held)


def banks_written_down():
    """Each module that writes mistakes down, and the bank that it makes."""
    for module in pkgutil.walk_packages(folder, f"{package}."):
        if ".mistakes" in module.name:
            held = importlib.import_module(module.name)
            yield held, getattr(held, "MISTAKES", ())
    for exercise in map(find, names()):
        chapter, _ = exercise.name.split("/")
        for module in modules_of(chapter):
            if exercise in vars(module).values():
                yield module, exercise.mistakes


def modules_of(chapter):
    """Those that hold the exercises of a chapter."""
    room = importlib.import_module(f"selfattn.doctor.exercises.{chapter}")
    for module in pkgutil.iter_modules(room.__path__, f"{room.__name__}."):
        yield importlib.import_module(module.name)


def test_a_mistake_that_is_written_down_is_in_its_bank():
    banks = list(banks_written_down())
    exercises = {find(name).mistakes for name in names()}
    assert exercises <= {bank for _, bank in banks}
    for module, bank in banks:
        written = {x for x in vars(module).values() if isinstance(x, Mistake)}
        apart = getattr(module, "DEVIATIONS", ())
        listed = {mistake.name for mistake in (*bank, *apart)}
        assert {mistake.name for mistake in written} <= listed, module


def declared(modules):
    """What the banks hold, after these modules were imported in this order."""
    held = {}
    for name in modules:
        module = importlib.import_module(name)
        for thing in vars(module).values():
            if isinstance(thing, Exercise):
                held[thing.name] = [mistake.name for mistake in thing.mistakes]
    return held


@pytest.mark.parametrize("backwards", [False, True])
def test_imported_again_and_in_any_order_banks_are_the_same(
    backwards, monkeypatch
):
    """No module writes into what another has declared."""
    rooms = ("selfattn.doctor.exercises", "selfattn.doctor.kinds")
    modules = sorted(name for name in sys.modules if name.startswith(rooms))
    before = declared(modules)
    for room in rooms:  # the new ones would stay in the package otherwise
        monkeypatch.setattr(room, sys.modules[room])
    for name in modules:
        monkeypatch.delitem(sys.modules, name)
    again = declared(sorted(modules, reverse=backwards))
    assert again == before and declared(modules) == before


def test_what_a_kind_is_made_of_does_not_know_the_kind():
    for file in Path(folder[0]).rglob("*.py"):
        imported = re.findall(r"^from (\S+) import", file.read_text(), re.M)
        known = [name for name in imported if name.startswith(package)]
        assert not [x for x in known if x.endswith(".kind")], file


@pytest.mark.parametrize(
    ("name", "label", "thing", "said"),
    HEALTHY,
    ids=[f"{name} {label}" for name, label, *_ in HEALTHY],
)
def test_the_example_of_a_kind_is_healthy(name, label, thing, said):
    report = examine(thing, kind=name, time_limit=None, **said)
    assert report.passed, report


def test_a_name_that_is_no_kind_lists_the_kinds():
    with pytest.raises(LookupError, match="Did you mean 'self-attention'"):
        examine(torch.softmax, kind="self-atention")


def test_a_fact_that_is_none_of_the_kind_is_refused():
    with pytest.raises(ValueError, match="must be a fact of its kind, but"):
        examine(torch.softmax, kind="attention", heads=3)
    with pytest.raises(
        ValueError, match="mask must be one of 'keep', 'block'"
    ):
        examine(torch.softmax, kind="attention", mask="forbid")


def test_one_kind_or_one_exercise_is_named():
    with pytest.raises(ValueError, match="as one kind or one exercise, but"):
        examine(torch.softmax)
    with pytest.raises(ValueError, match="kind='softmax' and exercise='x/y'"):
        examine(torch.softmax, kind="softmax", exercise="x/y")


def test_facts_that_are_not_said_are_tried_in_every_way():
    kind = Kind(
        "x",
        "nothing",
        exercise=lambda thing, facts: BANKS["softmax"],
        facts={
            "a": Fact("one", {1: "", 2: ""}),
            "b": Fact("two", {3: "", 4: ""}),
            "c": Fact("anything"),
            "d": Fact("a convention", {5: "", 6: ""}, tried=False),
        },
    )
    to_try = Reading(candidates={"c": (7, 8)})
    both = [read.facts for read in kind.readings({"b": 4}, to_try)]
    assert both == [{"a": a, "c": c, "b": 4} for a in (1, 2) for c in (7, 8)]
    [read] = kind.readings({"a": 1, "c": 0}, Reading({"b": 3}))
    assert read.facts == {"a": 1, "b": 3, "c": 0}
