"""A fixed sample of corruptions is caught; the rates are counted right."""

import json
import random
from pathlib import Path

import pytest

from tools.measure.corruptions import __main__ as command
from tools.measure.corruptions.checks import RECORD, findings
from tools.measure.corruptions.corruption import (
    HARMLESS,
    KINDS,
    Corruption,
    digest_half,
)
from tools.measure.corruptions.kinds import package, suite
from tools.measure.corruptions.tables import edits, rates, wilson
from tools.measure.corruptions.texts import Piece
from tools.measure.corruptions.trial import Outcome, copy_of
from tools.measure.provenance import ROOT

FREE = {"opposites in prose"}  # words that no machine understands
SEED = 2
EACH = 1


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A copy of the book."""
    return copy_of(ROOT, tmp_path_factory.mktemp("copy"))


def test_a_fixed_sample_is_caught(tree):
    names = [name for name in KINDS if name not in FREE]
    outcomes = list(command.run(tree, dict.fromkeys(names, EACH), SEED))
    assert len(outcomes) == EACH * len(names) > 20
    assert [str(o.corruption) for o in outcomes if not o.caught] == []


def test_edits_that_ought_to_pass_do(tree):
    outcomes = list(command.run(tree, dict.fromkeys(HARMLESS, EACH), SEED))
    assert outcomes
    red = [o for o in outcomes if o.caught not in ("", RECORD)]
    assert [(str(o.corruption), o.tests) for o in red] == []


def test_the_copy_is_whole_again_afterwards(tree):
    names = ["suite", "numbers in the text"]
    touched = {
        name
        for outcome in command.run(tree, dict.fromkeys(names, 2), SEED)
        for name in outcome.corruption.files
    }
    assert touched
    for name in touched:
        assert (tree / name).read_bytes() == (ROOT / name).read_bytes()


def test_what_is_no_python_any_more_is_caught(tree):
    """A line gone from a list of lists ended the campaign, not the edit."""
    path = tree / "book/cost.ipynb"
    whole = path.read_text("utf-8")
    book = json.loads(whole)
    first = next(c for c in book["cells"] if c["cell_type"] == "code")
    first["source"] = ["    [c for c in row]\n", "]"]
    path.write_text(json.dumps(book), "utf-8")
    found = findings(tree, ["book/cost.ipynb"])
    path.write_text(whole, "utf-8")
    assert RECORD in found and findings(tree, ["book/cost.ipynb"]) == {}


def test_a_workflow_that_is_no_yaml_any_more_is_caught(tree):
    """Two lines of one exchanged ended the campaign, not the edit."""
    name = ".github/workflows/publish.yml"
    path = tree / name
    whole = path.read_text("utf-8")
    path.write_text(whole.replace("name:", "  name:", 1), "utf-8")
    found = findings(tree, [name])
    path.write_text(whole, "utf-8")
    assert "tests/project/test_commands.py" in found
    assert findings(tree, [name]) == {}


def test_words_that_are_exchanged_leave_python():
    made = KINDS["drawings"](ROOT, random.Random(0))
    texts = [
        text
        for corruption in made
        for name, text in corruption.files.items()
        if name.endswith(".py")
    ]
    assert len(texts) > 50
    assert all(package.parses(text) for text in texts)
    assert not package.parses(f"{texts[0]})")


def test_a_bound_is_a_number_of_the_code_and_not_of_its_words():
    text = (
        "def test_far_out():\n"
        '    """In float32 it is off by 4e-4 — or so."""\n'
        "    # Sums are rounded at 1e-12.\n"
        '    assert f("—.05") == approx(3.0, abs=1e-6)\n'
    )
    piece = Piece("tests/test_x.py", "", text, lambda other: other)
    [test] = suite.tests(piece)
    assert [x.group() for x in suite.bounds(piece, test)] == ["1e-6"]


def made(place, kind="numbers"):
    return Corruption(kind, "digit up", place, "1", "2", {})


def test_rates_count_what_only_the_record_found_apart():
    found = [{"test_a": ["x"]}, {RECORD: ["x"], "test_a": []}, {RECORD: ["x"]}]
    outcomes = [Outcome(made(str(n)), f) for n, f in enumerate([*found, {}])]
    row = rates(outcomes)["numbers"]
    assert (row["tried"], row["caught"], row["by the record"]) == (4, 3, 1)
    assert row["by a test"] == {"test_a": 2}
    gentle = [Outcome(made("a", "harmless"), f) for f in [*found, {}]]
    assert edits(gentle)["digit up"] == {"tried": 4, "shown": 1, "red": 2}


@pytest.mark.parametrize(
    ("hits", "of", "low", "high"),
    [(0, 10, 0, 0.2775), (10, 10, 0.7225, 1), (5, 10, 0.2366, 0.7634)],
)
def test_the_interval_is_wilsons(hits, of, low, high):
    """As in tables: Wilson 1927, at 95 %."""
    assert wilson(hits, of) == pytest.approx((low, high), abs=1e-4)


def test_halves_are_about_halves():
    halves = [digest_half(str(n)) for n in range(1000)]
    assert 450 < halves.count("held") < 550
    assert {made("a").half} <= {"tune", "held"}


def test_what_is_on_record_was_measured_on_the_half_nobody_saw():
    known = json.loads(Path(command.LEDGER).read_text("utf-8"))
    held = known["halves"]["held"]
    assert set(held["kinds"]) == set(KINDS)
    assert sum(row["tried"] for row in held["kinds"].values()) >= 300
