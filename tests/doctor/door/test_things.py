"""What is in a file: what it made itself, each thing once."""

from types import ModuleType

from selfattn.doctor.door.things import things_in

FILE = """
import enum
import functools
import torch
from collections import OrderedDict
from torch import nn
from torch.nn.functional import softmax


class Size(enum.Enum):
    SMALL = 1


class OwnError(Exception):
    pass


class Plain:
    pass


class Called:
    def __call__(self, x):
        return x


class Layer(nn.Module):
    pass


class Made(nn.Module):
    pass


def attend(q, k, v):
    return v


def _private(x):
    return x


def test_attend():
    pass


same = attend
made = Made()
norm = nn.LayerNorm(3)
scaled = functools.partial(attend, v=1)
table = torch.ones(3)
"""


def names_in(text):
    made = ModuleType("mine")
    exec(text, vars(made))
    return [one.name for one in things_in(made)]


def test_what_a_file_makes_is_found_and_what_it_imports_is_not():
    names = names_in(FILE)
    assert names == ["Called", "Layer", "attend", "made", "norm", "scaled"]


def test_an_instance_stands_for_its_class_and_one_name_for_two():
    """`Made` is not listed beside `made`, nor `same` beside `attend`."""
    assert "Made" not in names_in(FILE) and "same" not in names_in(FILE)
    assert "Made" in names_in(FILE.replace("made = Made()", ""))


PARTS = """
from torch import nn


def helper(x):
    return x


def attend(q, k, v):
    return [helper(x) for x in (q, k, v)]


class Layer(nn.Module):
    def forward(self, x):
        return (lambda y: attend(y, y, y))(x)


layer = Layer()
"""


def test_a_function_knows_what_uses_it_and_comes_behind_it():
    made = ModuleType("mine")
    exec(PARTS, vars(made))
    assert [(one.name, one.used_by) for one in things_in(made)] == [
        ("layer", ()),
        ("helper", ("attend",)),
        ("attend", ("layer",)),
    ]


def test_an_empty_file_holds_nothing():
    assert names_in("import torch") == []
