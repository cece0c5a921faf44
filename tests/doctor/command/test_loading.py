"""The command's thing: whatever its import does, there is a report."""

import json
import os
import subprocess
import sys
import time

import pytest

from selfattn.doctor.__main__ import main

RIGHT = """
def right(q, k, v):
    return (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1) @ v
"""
FACTS = ["--kind", "attention", "--layout", "any"]


@pytest.fixture
def examined(tmp_path, capfd):
    """Examine what some lines define as ``right``: code, output, errors."""

    def run(lines, *more, name="mine.py:right"):
        (tmp_path / "mine.py").write_text(lines, "utf-8")
        code = main([f"{tmp_path / name}", *FACTS, *more])
        told = capfd.readouterr()
        assert "Traceback" not in told.out + told.err
        return code, told.out, told.err

    return run


IMPORTS = [
    ("import sys; sys.exit(0)", "It raises SystemExit: 0 while it was "),
    ("import os; os._exit(0)", "It ended the process with code 0 while it "),
    ("import os; os.abort()", "It crashed the process (SIGABRT) while it "),
    ("raise KeyboardInterrupt", "It raises KeyboardInterrupt while it was"),
    (
        "def right(q, k, v:",
        "It raises SyntaxError: '(' was never closed (mine",
    ),
    ("import torch; torch.ones(10**13)", "can't allocate memory"),
    ("import no_such_thing", "No module named 'no_such_thing' while it was"),
    ("1 / 0", "It raises ZeroDivisionError: division by zero while it was "),
    ("raise LookupError('of its own')", "It raises LookupError: of its own "),
    ("raise FileNotFoundError('gone')", "It raises FileNotFoundError: gone"),
]


@pytest.mark.parametrize(("lines", "words"), IMPORTS)
def test_an_import_that_goes_wrong_is_a_report(lines, words, examined):
    """`sys.exit(0)` in the file was silence and success: a green build."""
    code, out, err = examined(f"{lines}\n{RIGHT}")
    assert code == 2 and err == ""
    assert out.startswith("✗ right (attention): no diagnosis\n")
    assert words in " ".join(out.split())


def test_an_import_that_hangs_is_stopped(examined):
    for limit in (1, 8, 60):  # a busy machine may not come as far in one
        start = time.monotonic()
        code, out, _ = examined("while True: pass", "--time-limit", f"{limit}")
        assert time.monotonic() - start < limit + 60
        told = " ".join(out.split())
        assert code == 2 and f"within {limit} seconds, and was stop" in told
        if "and was stopped while it" in told:
            return
    pytest.fail(f"it was stopped elsewhere: {told}")


LOUD = """
import os, sys
print("{")
print("[", file=sys.stderr)
os.write(1, b"{[")
os.write(2, b"(")
"""


def test_what_an_import_prints_is_not_heard(examined):
    """It came before the JSON, which was none."""
    code, out, err = examined(LOUD + RIGHT, "--json")
    assert code == 0 and json.loads(out)["healthy"] and err == ""


def test_the_json_of_an_import_that_fails_says_so(examined):
    code, out, _ = examined("import sys; sys.exit(0)", "--json")
    told = json.loads(out)
    assert code == 2 and not told["healthy"]
    assert told["trouble"].startswith("It raises SystemExit: 0 while")


def test_a_file_may_be_what_a_module_is(examined, tmp_path):
    """Dataclasses look for the module; neighbours are imported by name."""
    (tmp_path / "neighbour.py").write_text("SCALE = 0.5", "utf-8")
    lines = """
from __future__ import annotations
from dataclasses import dataclass
import neighbour

@dataclass
class Scaled:
    power: float = neighbour.SCALE

    def __call__(self, q, k, v):
        return (q @ k.mT / q.shape[-1] ** self.power).softmax(-1) @ v

right = Scaled()
"""
    assert examined(lines)[0] == 0


@pytest.mark.parametrize("name", ["random", "torch", "selfattn", "json"])
def test_a_file_may_have_the_name_of_a_module(name, tmp_path, capsys):
    path = tmp_path / f"{name}.py"
    lines = f"import {name} as other\nassert other.__file__ != __file__\n"
    path.write_text(lines + RIGHT, "utf-8")
    assert main([f"{path}:right", *FACTS]) == 0
    assert capsys.readouterr().out.startswith("✓ right")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("none.py:right", "There is no file "),
        ("mine.py:wrong", "There is no 'wrong' in "),
        ("mine.py:right.er", "There is no 'er' in "),
    ],
)
def test_what_is_not_there_is_named(name, words, examined):
    """A file that was missing was told as “2”."""
    code, out, err = examined(RIGHT, name=name)
    assert code == 2 and out == ""
    assert words in err and name.partition(":")[0] in err


@pytest.mark.parametrize("what", ["folder", "pipe", "loop"])
@pytest.mark.parametrize("inside", ["", ":right"])
def test_what_is_there_and_no_file_is_not_called_missing(
    what, inside, tmp_path, capsys
):
    """Of a pipe, and of a link to itself, too: "There is no file"."""
    path = tmp_path / "mine.py"
    if what == "folder":
        path.mkdir()
    elif what == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to(path)
    assert main([f"{path}{inside}"]) == 2
    told = " ".join(capsys.readouterr().err.split())
    assert told.endswith("mine.py is there, but it is no file")


def test_a_module_that_is_not_there_is_named(capsys):
    assert main(["selfattn.nowhere:f", *FACTS]) == 2
    assert "No module named 'selfattn.nowhere'" in capsys.readouterr().err


def test_an_import_leaves_the_command_as_it_was(examined):
    lines = "import torch; torch.set_default_dtype(torch.float64)"
    code, out, _ = examined(lines + RIGHT)
    assert code == 0 and out.startswith("✓")


READS = """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--heads", type=int, default=3)
heads = parser.parse_args().heads
"""


def test_an_import_reads_no_arguments_of_ours(examined, monkeypatch):
    """It read those of the command, and ended: ``SystemExit: 2``."""
    told = ["doctor", "mine.py:right", "--kind", "attention"]
    monkeypatch.setattr("sys.argv", told)
    code, out, err = examined(READS + RIGHT)
    assert code == 0 and out.startswith("✓") and err == ""
    assert sys.argv == told


def test_json_is_told_of_a_refusal_in_this_process_too(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["doctor", "--json", "nothing"])
    assert main() == 2
    assert "refused" in json.loads(capsys.readouterr().out)


GARBLES = """
import os, time
for number in range(3, 100):
    try:
        os.write(number, {message})
    except OSError:
        pass
{then}
"""


@pytest.mark.parametrize(
    ("message", "then", "words"),
    [
        (r"b'\0\0\0\3abc'", "", "It garbles what is told of it"),
        ("b'A' * 8", "time.sleep(600)", "It did not come to an end within 2"),
    ],
)
def test_an_import_that_writes_where_we_speak_is_a_report(
    message, then, words, tmp_path
):
    """One ended the command with a traceback, and so with 1, which is "ill";
    of the other, the rest of a message was awaited for ever.

    In a process of its own, for it writes wherever this one might.
    """
    path = tmp_path / "mine.py"
    path.write_text(GARBLES.format(message=message, then=then) + RIGHT)
    done = subprocess.run(
        [sys.executable, "-m", "selfattn.doctor", path, "--time-limit", "2"],
        capture_output=True,
        check=False,
        encoding="utf-8",
        timeout=120,
    )
    assert done.returncode == 2 and done.stderr == ""
    assert words in " ".join(done.stdout.split())


def test_an_import_that_counts_wrong_is_a_report(examined):
    code, out, _ = examined("import builtins\nbuiltins.len = lambda x: 3")
    assert code == 2 and "It garbles what is told" in " ".join(out.split())
