"""The style sheet, held by tests: how long, how named, who imports whom."""

import inspect
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from guards import source

import selfattn

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "selfattn"


@pytest.mark.parametrize(
    "guard",
    [
        source.too_long,
        source.asserts,
        source.undocumented,
        source.named_badly,
        source.imports_backwards,
        source.without_header,
    ],
    ids=lambda guard: guard.__name__,
)
def test_the_package_keeps_its_style(guard):
    assert guard(PACKAGE) == []


@pytest.mark.parametrize("folder", ["tools", "book/extensions"])
@pytest.mark.parametrize(
    "guard",
    [source.too_long, source.asserts, source.undocumented],
    ids=lambda guard: guard.__name__,
)
def test_what_surrounds_the_package_keeps_it_too(guard, folder):
    assert guard(ROOT / folder) == []


@pytest.mark.parametrize("folder", ["src", "tools", "book/extensions"])
def test_no_module_takes_a_name_of_the_standard_library(folder):
    assert source.named_like_pythons(ROOT / folder) == []


def test_no_test_is_weak():
    assert source.weak_tests(ROOT / "tests") == []


def test_no_test_is_called_by_an_address(tmp_path):
    """One was, and several processes refused to share the tests out."""
    shutil.copy(ROOT / "tests" / "conftest.py", tmp_path)
    (tmp_path / "test_it.py").write_text(
        "import pytest\n\n"
        "@pytest.mark.parametrize('x', [object(), 'word'], ids=str)\n"
        "def test_it(x):\n    assert x\n"
    )
    command = [sys.executable, "-m", "pytest", "-qpno:nbval", "--co", "."]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode != 0
    assert "names an address" in done.stdout + done.stderr


def mechanisms():
    """The public mechanisms: what takes q, k, v, or holds such a call."""
    for name in selfattn.__all__:
        thing = getattr(selfattn, name)
        if name.endswith("_attention") or name == "attention":
            yield name, thing
        elif (
            name.endswith("Attention")
            and isinstance(thing, type)
            and issubclass(thing, torch.nn.Module)
            and "q" in inspect.signature(thing.forward).parameters
        ):
            yield name, thing.forward


@pytest.mark.parametrize(
    "attend", [pytest.param(f, id=name) for name, f in mechanisms()]
)
def test_every_mechanism_is_called_alike(attend):
    parameters = dict(inspect.signature(attend).parameters)
    parameters.pop("self", None)
    names = list(parameters)
    assert names[:3] == ["q", "k", "v"]
    assert all(
        parameters[n].kind is inspect.Parameter.KEYWORD_ONLY for n in names[3:]
    )
    assert parameters["mask"].default is None
    assert parameters["bias"].default is None
    assert parameters["causal"].default is False
