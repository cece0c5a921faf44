"""One command says what the package weighs."""

import re
from importlib.metadata import PackageNotFoundError

from selfattn.doctor.__main__ import main
from selfattn.doctor.command import weighing as scales

LINES = (
    r"selfattn  \d+\.\d+\.\d+",
    r"size      (\d+\.\d) MB in (\d+) files",
    r"asks for  jaxtyping>=\S+, torch>=\S+; rich, if it is there",
    r"import    (\d+\.\d) s, after (\d+\.\d) s for torch",
)


def test_one_command_says_size_requirements_and_seconds(capsys):
    assert main(["--weight"]) == 0
    told = capsys.readouterr().out.splitlines()
    assert len(told) == len(LINES)
    size, files, ours, torchs = (
        float(number)
        for pattern, line in zip(LINES, told, strict=True)
        for number in re.fullmatch(pattern, line).groups()
    )
    assert 0.5 < size < 10 and 200 < files < 1000
    assert 0 < ours < 60 and 0 < torchs < 120


def test_what_python_leaves_is_not_counted(tmp_path):
    (tmp_path / "__pycache__").mkdir()
    for name in ("a.py", "__pycache__/a.pyc"):
        (tmp_path / name).write_text("1")
    assert [p.name for p in tmp_path.rglob("*") if scales.counts(p)] == [
        "a.py"
    ]


def test_what_is_not_installed_has_no_version(monkeypatch):
    def none(name):
        raise PackageNotFoundError(name)

    monkeypatch.setattr(scales, "distribution", none)
    assert scales.version() == "not installed"
    assert scales.asked_for() == ["jaxtyping", "torch"]
