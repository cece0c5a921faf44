"""What the doctor said of a few strangers, it says still, or better."""

import json

import pytest

from tools.measure.clinic.drawing import Case
from tools.measure.clinic.examining import visit
from tools.measure.clinic.patients import styles
from tools.measure.clinic.sample import PATH, WAY, rank

STYLES = {f"{s.kind}/{s.name}": s for s in styles()}
SAMPLE = json.loads(PATH.read_text("utf-8"))


@pytest.mark.parametrize(
    "seen",
    SAMPLE,
    ids=lambda seen: " ".join((seen["patient"], *seen["operators"])),
)
def test_no_outcome_worsens(seen):
    style = STYLES[seen["patient"]]
    operators = tuple(seen["operators"])
    text = seen["text"] or style.text
    case = Case(style, operators, (0,) * len(operators), text)
    assert rank(visit(case, WAY)) >= seen["rank"]


def test_the_sample_has_every_kind_sound_and_ill():
    kinds = {style.kind for style in STYLES.values()}
    for planted in (True, False):
        of = [s["patient"] for s in SAMPLE if bool(s["operators"]) == planted]
        assert {name.partition("/")[0] for name in of} == kinds
