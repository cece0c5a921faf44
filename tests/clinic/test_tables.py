"""What is counted of visits, and which patients are drawn."""

import itertools
import json

import pytest

from tools.measure.clinic import __main__ as clinic
from tools.measure.clinic import drawing
from tools.measure.clinic.drawing import ill, sound
from tools.measure.clinic.examining import Visit, told, ways
from tools.measure.clinic.patients import patient
from tools.measure.clinic.sample import rank
from tools.measure.clinic.tables import seconds, tables, wilson


def seen(outcome, name="", operators=(), way="the facts"):
    """A visit that went so."""
    places = (0,) * len(operators)
    return Visit(
        *("attention", "here", operators, places, way),
        *(outcome, name, bool(name), (), 0.5, ""),
    )


SCALE = ("scale left out",)
VISITS = [
    seen("ill", "no scale", SCALE),
    seen("ill", "divided by d", SCALE),
    seen("ill", "", SCALE),
    seen("healthy", "", SCALE),
    seen("healthy"),
    seen("ill", "no scale"),
    seen("asks"),
]


def test_each_outcome_is_counted_in_its_place():
    whole = tables(VISITS)["told the facts"]["all"]
    counts = {name: x["n"] for name, x in whole.items() if name != "seconds"}
    assert counts == {
        "found": 3,
        "told apart": 3,
        "named right": 1,
        "surely named wrong": 1,
        "shown, and asked": 0,
        "called healthy": 1,
        "false alarms": 1,
        "refused": 1,
    }


def test_one_without_a_name_is_not_named_wrong():
    (row,) = tables([VISITS[2]])["told the facts"]["by kind"].values()
    assert row["surely named wrong"]["n"] == 0


def test_to_call_all_ill_is_to_tell_none_apart():
    for outcome, apart in (("healthy", 1), ("asks", 1), ("ill", 0)):
        both = [VISITS[0], seen(outcome)]
        row = tables(both)["told the facts"]["all"]
        assert (row["found"]["n"], row["told apart"]["n"]) == (1, apart)
    alone = tables([VISITS[0]])["told the facts"]["all"]["told apart"]
    assert (alone["n"], alone["of"]) == (0, 0)


def test_one_that_is_asked_may_have_been_shown_what_fails():
    asked = seen("asks", "", SCALE)
    for visit, n in ((asked, 0), (asked._replace(shown=True), 1)):
        row = tables([visit])["told the facts"]["all"]
        assert row["shown, and asked"]["n"] == n
    ill = VISITS[0]._replace(shown=True)
    row = tables([ill])["told the facts"]["all"]
    assert (row["found"]["n"], row["shown, and asked"]["n"]) == (1, 0)


def test_formulas_of_ones_own_are_counted_apart():
    both = [VISITS[0], VISITS[3]._replace(own=True)]
    rows = tables(both)["told the facts"]["by formula"]
    found = {name: row["found"]["n"] for name, row in rows.items()}
    assert found == {"one the doctor knows": 1, "its own": 0}


def test_who_was_told_a_formula_is_compared_with_himself():
    """All with a formula of their own are others than those it is told of."""
    way = "the facts and the formula"
    with_it = VISITS[3]._replace(outcome="ill", told=way)
    other = VISITS[0]._replace(style="elsewhere", own=True)
    left_out = VISITS[4]._replace(told="all but formula")
    whole = tables([VISITS[3], with_it, other, left_out])
    found = {name: table["visits"] for name, table in whole.items()}
    assert found["told the formula, too"] == 1
    assert found["told the facts"] == 2
    assert found["the same, not told it"] == 1
    same = whole["the same, not told it"]["all"]["found"]
    assert (same["n"], same["of"]) == (0, 1)


def test_two_mistakes_are_right_by_either_name():
    two = seen("ill", "no scale", (*SCALE, "mask not used"))
    assert two.right and not seen("ill", "detached", two.operators).right


def test_an_interval_holds_its_rate_and_narrows():
    low, high = wilson(8, 10)
    assert low < 0.8 < high
    assert high - low > wilson(800, 1000)[1] - wilson(800, 1000)[0]


def test_the_slowest_in_a_hundred_is_told():
    quick = [seen("healthy")] * 99
    slow = seen("healthy")._replace(seconds=9.0)
    assert seconds([*quick, slow]) == {"median": 0.5, "99 %": 9.0}


@pytest.mark.parametrize(
    ("visit", "place"),
    [
        (VISITS[0], 2),
        (VISITS[1], 1),
        (VISITS[3], 0),
        (VISITS[4], 2),
        (VISITS[5], 0),
        (VISITS[6], 1),
    ],
)
def test_outcomes_have_a_rank(visit, place):
    assert rank(visit) == place


def test_the_halves_have_no_style_in_common():
    names = {
        half: {case.style.name + case.style.kind for case in sound(half)}
        for half in ("tune", "measure", "both")
    }
    assert not names["tune"] & names["measure"]
    assert names["tune"] | names["measure"] == names["both"]
    kinds = {case.style.kind for case in sound("both")}
    assert {case.style.kind for case in sound("measure")} == kinds


def test_a_seed_draws_the_same_patients_again(monkeypatch, tmp_path):
    few = [case.style for case in sound("tune")[:2]]
    monkeypatch.setattr(drawing, "styles", lambda: few)
    monkeypatch.setattr(drawing, "STORE", tmp_path)
    first, again = (
        [case.name for case in itertools.islice(ill("tune", 3), 3)]
        for _ in range(2)
    )
    assert first == again
    assert len(list((tmp_path / "oracle").iterdir())) >= 3


def test_a_sound_one_comes_with_each_fact_left_out():
    case = next(c for c in sound("both") if c.style.name == "any_axes")
    made = patient(case.text)
    assert ways(case, made) == [
        "the facts",
        "nothing",
        *(f"all but {name}" for name in made.facts),
    ]
    assert told(made, case.style, "all but mask")[0].keys() == {
        "layout",
        "empty_row",
    }


def test_a_fact_without_a_word_is_not_told():
    case = next(c for c in sound("both") if c.style.name == "any_axes")
    made = patient(case.text)
    made.facts["colour"] = "red"
    said, wordless = told(made, case.style, "the facts")
    assert "colour" not in said and wordless == ["colour"]


def test_a_visit_is_read_as_it_was_written(tmp_path):
    path = tmp_path / "visits"
    clinic.write(path, "one", VISITS[0])
    clinic.write(path, "two", VISITS[4])
    assert clinic.read(path) == {"one": VISITS[0], "two": VISITS[4]}


def test_what_is_committed_holds_no_visit_and_no_style_to_tune_on():
    whole = json.loads(clinic.PATH.read_text("utf-8"))
    measured = {f"{c.style.kind}/{c.style.name}" for c in sound("measure")}
    for table in whole["tables"].values():
        assert set(table["by style"]) <= measured


def test_a_formula_of_ones_own_is_told_as_it_was_written_by_hand():
    case = next(c for c in sound("tune") if c.style.name == "gated_output")
    made = patient(case.text)
    way, *rest = ways(case, made)
    assert way.endswith("formula") and "the facts" in rest
    said, wordless = told(made, case.style, way)
    assert callable(said["formula"]) and not wordless
    assert told(made, case.style, "the facts")[0]["formula"] == "own"
