"""A file is looked at in a process of its own, whatever it does."""

import os
from functools import partial

import pytest

from selfattn.doctor.command.loading import load, load_module
from selfattn.doctor.door import surveying as door
from selfattn.doctor.door.surveying import Survey, survey
from selfattn.doctor.engine.isolation import RefusedError

FILE = """
def attend(q, k, v):
    return (q @ k.mT).softmax(-1) @ v

def halves(x):
    return x.chunk(2, dim=-1)
"""


@pytest.fixture
def surveyed(tmp_path):
    """What is found in some lines, or in one thing that they name."""

    def run(lines, inside="", limit=20.0):
        path = tmp_path / "mine.py"
        path.write_text(lines, "utf-8")
        if inside:
            make = partial(load, f"{path}:{inside}")
        else:
            make = partial(load_module, str(path))
        return survey(make, inside, limit, None)

    return run


def test_each_thing_of_a_file_is_guessed_in_its_order(surveyed):
    found = surveyed(FILE)
    assert [(g.name, g.kind) for g in found.guesses] == [
        ("attend", "attention"),
        ("halves", ""),
    ]
    assert found.trouble == ""


UNSEEN = {
    "no hash": """
@dataclass
class Settings:
    width: int = 3
    def __call__(self, q, k, v):
        return attend(q, k, v)
""",
    "no attribute": """
class Settings:
    def __getattr__(self, name):
        raise RuntimeError(name)
    def __call__(self, q, k, v):
        return attend(q, k, v)
""",
    "no class": """
class Settings:
    def __getattribute__(self, name):
        raise KeyError(name)
    def __call__(self, q, k, v):
        return attend(q, k, v)
""",
    "no equal": """
class Settings:
    def __eq__(self, other):
        raise RuntimeError
    def __hash__(self):
        raise RuntimeError
    def __call__(self, q, k, v):
        return attend(q, k, v)
""",
}


@pytest.mark.parametrize("why", UNSEEN)
def test_what_cannot_be_looked_at_hides_nothing_else(why, surveyed):
    """An instance of a dataclass has no hash, and a lazy object raises at
    whatever it is asked: of the whole file it was said that it raises
    `TypeError: unhashable type`, and of its attention nothing.
    """
    made = f"from dataclasses import dataclass\n{FILE}{UNSEEN[why]}"
    found = surveyed(f"{made}\nsettings = Settings()\n")
    guesses = {g.name: g for g in found.guesses}
    assert found.trouble == "" and guesses["attend"].kind == "attention"
    known = why == "no hash"
    assert (guesses["settings"].kind == "attention") is known
    if not known:
        assert ", it raised " in guesses["settings"].why


def test_one_thing_of_a_file_is_guessed_alone(surveyed):
    (guess,) = surveyed(FILE, "attend").guesses
    assert (guess.name, guess.kind) == ("attend", "attention")


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("1 / 0", "It raises ZeroDivisionError: division by zero while it"),
        ("import os; os._exit(4)", "It ended the process with code 4 while"),
        ("while True: pass", "within 1 seconds, and was stopped while it was"),
    ],
)
def test_a_file_that_goes_wrong_is_a_report(lines, words, surveyed):
    found = surveyed(lines + FILE, limit=1.0)
    assert found.guesses == () and words in found.trouble


def test_a_thing_that_ends_the_process_ends_its_child_alone(surveyed):
    lines = "import os\ndef attend(q, k, v): os._exit(3)\n"
    lines += "def f(x): os._exit(3)\n"
    found = surveyed(lines)
    assert "code 3 while its kind was guessed" in found.trouble


def test_without_a_fork_it_is_done_here(surveyed, monkeypatch):
    monkeypatch.setattr(door, "can_fork", lambda: False)
    monkeypatch.setattr(os, "fork", None)
    assert surveyed(FILE).guesses[0].kind == "attention"
    assert "ZeroDivisionError" in surveyed("1 / 0").trouble


def test_what_is_not_there_is_refused(surveyed):
    with pytest.raises(RefusedError, match="There is no 'nothing' in"):
        surveyed(FILE, "nothing")


def test_a_survey_can_be_sent_and_completed():
    found = Survey().with_(trouble="It fell.")
    assert found.trouble == "It fell." and found.portable() is found


LEAVES = """
import torch

class Kind(type):
    def __getattribute__(cls, name):
        raise SystemExit(3)

class Gone(torch.nn.Module):
    def __getattribute__(self, name):
        if name in ("__class__", "__dict__"):
            return super().__getattribute__(name)
        raise SystemExit(4)

class Left(metaclass=Kind):
    pass

gone = Gone.__new__(Gone)

def attend(q, k, v):
    return (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1) @ v
"""


def test_a_thing_that_ends_the_program_when_looked_at_is_left_out(tmp_path):
    """One such thing in a file, and of its attention nothing was said."""
    path = tmp_path / "leaves.py"
    path.write_text(LEAVES, "utf-8")
    found = survey(partial(load_module, str(path)), "leaves", 20, None)
    assert found.trouble == ""
    told = {guess.name: guess for guess in found.guesses}
    assert told["attend"].kind == "attention"
    assert "it raised SystemExit" in told["Left"].why
    assert "it raised SystemExit" in told["gone"].why
