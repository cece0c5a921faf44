"""A mistake is referred to as an object: what it is called decides nothing."""

import ast
from pathlib import Path

import pytest

from selfattn import doctor
from selfattn.doctor.engine import naming, promises
from selfattn.doctor.exercise import name_of
from selfattn.doctor.exercises.multihead import attention as multihead
from selfattn.doctor.kinds.cached_decoder.kind import for_decoder

HERE = Path(doctor.__file__).parent
FOLDER = HERE / "kinds" / "cached_decoder"
MODULES = [
    HERE / "engine" / "promises.py",
    HERE / "engine" / "naming.py",
    *(FOLDER / f"{name}.py" for name in ("blindness", "sight", "signs")),
]


def known():
    """What mistakes are called, of a decoder, and those that we look for."""
    decoder = for_decoder(8)
    return {
        *promises.MAY_BE_ITS_OWN,
        *promises.BY_FLAG,
        naming.COMPUTED,
        *(m.name for m in (*decoder.mistakes, *decoder.deviations)),
    }


def strings(text):
    """What a module has between quotes."""
    nodes = ast.walk(ast.parse(text))
    return {node.value for node in nodes if isinstance(node, ast.Constant)}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_no_mistake_is_named_by_its_words(path):
    """Whoever reworded a name changed silently what the doctor said."""
    assert not strings(path.read_text("utf-8")) & known()


def test_a_name_is_that_of_the_mistake():
    assert name_of(multihead.input_added) == multihead.input_added.name
    assert multihead.input_added.name in promises.MAY_BE_ITS_OWN
    assert strings('x = "no scale"') & {"no scale"}
