"""Output: a report reaches whatever encoding there is, and JSON is JSON."""

import io
import json
import os
import subprocess
import sys

import pytest

from selfattn.doctor import check
from selfattn.doctor.__main__ import main
from selfattn.doctor.report.output import any_encoding, plain

ENCODINGS = ["utf-8", "cp1252", "latin-1", "ascii", "utf-16", "shift_jis"]
NAMED = """
class Größe_√:
    pass
"""
UNSCALED = """
def unscaled(q, k, v):
    return (q @ k.mT).softmax(-1) @ v
def right(q, k, v):
    return (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1) @ v
def surrogate(q, k, v):
    raise ValueError("\\udcff ☃ é")
"""


@pytest.fixture
def written(tmp_path, monkeypatch):
    """What the command writes to an output of some encoding, and its code."""
    (tmp_path / "mine.py").write_text(UNSCALED, "utf-8")

    def run(encoding, *words):
        streams = [io.TextIOWrapper(io.BytesIO(), encoding) for _ in "oe"]
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", streams[0])
            patch.setattr(sys, "stderr", streams[1])
            code = main([word.format(tmp_path) for word in words])
        texts = []
        for stream in streams:
            assert stream.errors == "strict"  # as it was before
            stream.flush()
            texts.append(stream.buffer.getvalue().decode(encoding))
        return code, *texts

    return run


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_a_report_is_written_whatever_the_encoding(encoding, written):
    """The report was lost, and a healthy patient exited with 1."""
    facts = ("--kind", "attention", "--layout", "any")
    code, out, err = written(encoding, "{}/mine.py:right", *facts)
    assert code == 0 and "right (attention): healthy, on " in out and not err
    code, out, err = written(encoding, "{}/mine.py:unscaled", *facts)
    assert code == 1 and "unscaled (attention): no scale" in out and not err
    assert "math.sqrt" in out
    code, out, err = written(encoding, "{}/mine.py:surrogate", *facts)
    assert code == 1 and "It raises ValueError: " in out and not err


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_lists_and_errors_are_written_whatever_the_encoding(encoding, written):
    code, out, err = written(encoding, "--list")
    assert code == 0 and "self-attention: " in out and not err
    code, out, err = written(encoding, "--list", "--kind", "attention")
    assert code == 0 and "mask after softmax: " in out and not err
    code, out, err = written(encoding, "{}/☃.py:f", "--kind", "attention")
    assert code == 2 and "There is no file " in err and not out


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_json_is_json_whatever_the_encoding(encoding, written):
    words = ("--kind", "attention", "--layout", "any", "--json")
    for name, code in (("right", 0), ("unscaled", 1), ("surrogate", 1)):
        found, out, err = written(encoding, f"{{}}/mine.py:{name}", *words)
        told = json.loads(out)
        assert found == code and told["patient"] == name and not err


def test_signs_have_words_where_there_are_no_signs(written):
    _, out, _ = written(
        "ascii", "{}/mine.py:right", "--kind=attention", "--layout=any"
    )
    assert out.startswith("[healthy] right (attention): healthy, on ")
    assert plain("✗") == "[ill]" and plain("ö") == "o" and plain("☃") == "?"


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_an_answer_is_checked_whatever_the_encoding(encoding, monkeypatch):
    """In a script, whose output a file of another system takes."""
    stream = io.TextIOWrapper(io.BytesIO(), encoding)
    monkeypatch.setattr(sys, "stdout", stream)
    check(lambda q, k: q, exercise="dot_product/weights")
    check(None, exercise="dot_product/weight_")
    stream.flush()
    text = stream.buffer.getvalue().decode(encoding)
    assert "dot_product/weights: wrong on " in text
    assert "Did you mean 'dot_product/weights'?" in text


def test_what_is_not_written_to_text_is_left_alone(monkeypatch):
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    with any_encoding():
        print("√")
    assert sys.stdout.getvalue() == "√\n"


def test_a_reader_that_goes_away_is_no_traceback():
    """`python -m selfattn.doctor --list | head -1`."""
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-m", "selfattn.doctor", "--list"],
        stdout=writer,
        stderr=subprocess.PIPE,
        timeout=120,
        text=True,
    )
    os.close(writer)
    assert done.stderr == ""


def test_without_rich_the_report_is_plain(monkeypatch, written):
    """It is no requirement of the package: there was no report at all."""
    monkeypatch.setitem(sys.modules, "rich", None)
    monkeypatch.setitem(sys.modules, "rich.console", None)
    code, out, err = written(
        "utf-8", "{}/mine.py:right", "--kind=attention", "--layout=any"
    )
    assert code == 0 and out.startswith("✓ right (attention)") and not err
