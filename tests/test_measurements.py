"""Committed measurements are found, and say where they come from."""

import json
from pathlib import Path

import pytest

from selfattn import measurements
from selfattn.measurements import measured

COMMITTED = Path(__file__).parents[1] / "book" / "measurements"


@pytest.mark.parametrize(
    "path", sorted(COMMITTED.glob("*.json")), ids=lambda path: path.stem
)
def test_what_is_read_is_what_is_committed(path):
    assert measured(path.stem) == json.loads(path.read_text("utf-8"))


def test_a_wheel_carries_its_own_copy_and_prefers_it(tmp_path, monkeypatch):
    (tmp_path / "dot_product.json").write_text('{"here": 1}')
    folders = (tmp_path, *measurements.FOLDERS)
    monkeypatch.setattr(measurements, "FOLDERS", folders)
    assert measured("dot_product") == {"here": 1}


def test_an_unknown_name_says_where_it_looked():
    with pytest.raises(ValueError, match=r"no nothing.json in .*measurements"):
        measured("nothing")
