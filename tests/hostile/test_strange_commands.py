"""What strangers found around the doctor: its command, its child, its words.

As in `test_strangers`, each is a single story: a wrong answer, nonsense that
was taken, an obscure error, or a traceback.
"""

import json
import os
import resource
import subprocess
import sys
from decimal import Decimal
from fractions import Fraction

import pytest
import torch
from torch import nn

from selfattn import attention
from selfattn.doctor import __main__ as command
from selfattn.doctor import examine
from selfattn.doctor.__main__ import main
from selfattn.doctor.command import weighing
from selfattn.doctor.engine import isolation
from selfattn.doctor.engine.outcome import in_words

RIGHT = """
def right(q, k, v):
    return (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1) @ v
"""
FACTS = ["--kind", "attention", "--layout", "any"]


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder of one's own, with a sound patient in ``mine.py``."""
    (tmp_path / "mine.py").write_text(RIGHT, "utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def by_shell(line, *flags, **environment):
    """The command in a shell: its code, its output and its errors."""
    python = " ".join([sys.executable, *flags])
    done = subprocess.run(
        ["bash", "-c", line.replace("doctor", f"{python} -m selfattn.doctor")],
        capture_output=True,
        text=True,
        timeout=240,
        env={**os.environ, **environment},
    )
    return done.returncode, done.stdout, done.stderr


# What is said to the command


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--kind"],
        ["--time-limit", "abc", "mine.py"],
        ["--memory-limit", "4GB", "mine.py"],
        ["--list", "mine.py"],
        ["--list", "--causal"],
        ["--weight", "mine.py"],
    ],
)
def test_whatever_is_refused_is_refused_as_json(words, capsys):
    """argparse printed its usage and ended; `--list` heard nothing else."""
    assert main(["--json", *words]) == 2
    told = json.loads(capsys.readouterr().out)
    assert list(told) == ["refused"] and told["refused"]


def test_a_limit_that_is_no_number_is_told_what_is_one(capsys):
    assert main(["mine.py", "--memory-limit", "4GB"]) == 2
    assert "number above 0, or 0 for none, not 4GB" in capsys.readouterr().err


def test_a_weight_is_json_too(capsys, monkeypatch):
    monkeypatch.setattr(weighing, "seconds", lambda: (1.0, 2.0))
    assert main(["--weight", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["import"] == "2.0 s, after 1.0 s for torch"


@pytest.mark.parametrize("more", [[], FACTS])
def test_a_module_in_a_module_is_no_patient(more, here, capsys):
    """It was left out without a reason, or what it begins with was taken."""
    (here / "mine.py").write_text(f"import math{RIGHT}", "utf-8")
    for name in ("mine.py:math", "torch:nn"):
        assert main([name, *more]) == 2
        assert "is a module itself" in capsys.readouterr().err


def test_why_one_is_left_out_ends_with_one_full_stop(here, capsys):
    (here / "mine.py").write_text(f"{RIGHT}\nx = = 3", "utf-8")
    assert main(["mine.py:right"]) == 2
    out = capsys.readouterr().out
    assert out.rstrip().endswith("while it was imported.") and ".." not in out


def test_a_name_that_is_no_text_hides_no_others(here, capsys):
    """It was an error of ours, said to be the file's."""
    (here / "mine.py").write_text(f"{RIGHT}\nglobals()[3] = right", "utf-8")
    assert main(["mine.py"]) == 0
    assert "✓ right (attention): healthy" in capsys.readouterr().out


def test_a_file_of_a_package_may_import_from_beside_it(here, capsys):
    package = here / "outer" / "inner"
    package.mkdir(parents=True)
    (here / "outer" / "__init__.py").touch()
    (package / "__init__.py").write_text("from .sound import right", "utf-8")
    (package / "sound.py").write_text(RIGHT, "utf-8")
    imports = "from ..inner import sound\ndef mine(q, k, v):\n"
    body = "    return sound.right(q, k, v)\n"
    (package / "mine.py").write_text(f"{imports}{body}", "utf-8")
    assert main(["outer/inner/mine.py"]) == 0
    assert "✓ mine (attention): healthy" in capsys.readouterr().out
    (here / "alone.py").write_text("from .sound import right", "utf-8")
    assert main(["alone.py"]) == 2
    assert "there is no __init__.py in" in capsys.readouterr().err


def test_whoever_stops_it_sees_no_traceback(capsys, monkeypatch):
    def is_stopped(request):
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "visits", is_stopped)
    assert main(["mine.py", "--json"]) == 2
    told = json.loads(capsys.readouterr().out)
    assert told == {"refused": "It was stopped before all was said."}


# Where it is run


def test_streams_that_are_closed_change_no_verdict(here):
    """The pipe had the number of a stream, and was closed as that."""
    facts = " ".join(FACTS)
    for closed in ("<&- >&- 2>&-", ">&- 2>&-"):
        assert by_shell(f"doctor mine.py:right {facts} {closed}") == (
            0,
            "",
            "",
        )
    code, _, err = by_shell(f"doctor mine.py:right {facts} --json >&-")
    assert (code, err) == (0, "")
    code, out, _ = by_shell("doctor no.py --json 2>&-")
    assert code == 2 and json.loads(out)["refused"].startswith("There is no")


@pytest.mark.parametrize(
    "more", ["mine.py", "mine.py --json", "--list", "--help"]
)
def test_a_disk_that_is_full_is_told(more, here):
    """It was a traceback, and the code of an illness."""
    code, _, err = by_shell(f"doctor {more} > /dev/full")
    assert code == 2 and err.startswith("Not all could be written: ")
    assert err.count("\n") == 1


def test_a_reader_that_goes_away_makes_nobody_ill(here):
    """rich ends the process with 1, which is the code of an illness."""
    line = "doctor mine.py:right --kind attention --layout any"
    code, _, err = by_shell(f"{line} | true; exit ${{PIPESTATUS[0]}}")
    assert (code, err) == (2, "")


def test_a_terminal_without_columns_shows_the_report(
    here, capsys, monkeypatch
):
    """rich printed nothing at all."""
    monkeypatch.setenv("COLUMNS", "0")
    assert main(["mine.py"]) == 0
    assert "✓ right (attention): healthy" in capsys.readouterr().out


@pytest.mark.parametrize("words", ["mine.py", "--list", "--list --kind rope"])
def test_python_without_docstrings_is_refused_in_words(words, here):
    """What mistakes are called is in docstrings: `list index out of range`."""
    code, out, err = by_shell(f"doctor {words} --json", "-OO")
    assert code == 2 and "PYTHONOPTIMIZE=2" in json.loads(out)["refused"]
    assert "Traceback" not in err


# What the child may take


def test_too_little_memory_to_tell_is_told():
    """`It ended the process with code 0`: the telling found no memory.

    What the process has at hand already may be enough, as it may be here.
    """
    report = examine(attention, kind="attention", memory_limit=1)
    assert report.passed or "memory" in report.trouble.lower(), report


def test_a_limit_of_the_system_is_kept(monkeypatch):
    """`It raises ValueError: current limit exceeds maximum limit`."""
    made = []
    for limits in ((3e9, 3e9), (3e9, resource.RLIM_INFINITY)):
        monkeypatch.setattr(resource, "getrlimit", lambda _, x=limits: x)
        monkeypatch.setattr(
            resource, "setrlimit", lambda _, told: made.append(told)
        )
        isolation.limit_memory(4e12)
    assert [soft for soft, _ in made] == [3e9, 3e9]


# What is examined


class OneHead(nn.Module):
    def __init__(self, **options):
        super().__init__()
        self.qkv = nn.Linear(12, 36, **options)

    def forward(self, x):
        return attention(*self.qkv(x).chunk(3, -1))


def test_a_module_without_numbers_is_told_so_as_any_kind():
    """Of meta tensors it was said that the reference fails."""
    lazy = OneHead()
    lazy.qkv = nn.LazyLinear(36)
    for kind in ("self-attention", "encoder"):
        for one, words in (
            (lazy, "at its first call"),
            (OneHead(device="meta"), "on the device meta"),
        ):
            report = examine(one, kind=kind)
            assert words in report.trouble and report.exit_code == 2


def test_what_an_error_says_may_be_printed():
    """A report with half a character could not be, one with an escape was."""
    words = in_words(ValueError("a\udc80b\x1b[31mc\0d é"))
    assert words == "ValueError: a\ufffdb\ufffd[31mc\ufffdd é"


@pytest.mark.parametrize(
    ("exercise", "answer", "right"),
    [
        ("linear/two_words", [Fraction(4, 7), Fraction(6, 7)], True),
        ("linear/two_words", (Decimal("0.571"), Fraction(6, 7)), True),
        ("models/kept", Fraction(2), True),
        ("models/kept", Decimal(3), False),
        ("models/kept", 2 + 5j, False),
        ("models/kept", torch.tensor(2 + 5j), False),
    ],
)
def test_a_number_is_one_however_it_is_written(exercise, answer, right):
    """Fractions were no numbers; of complex ones a half was not looked at."""
    assert examine(answer, exercise=exercise).passed is right
