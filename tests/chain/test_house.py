"""A tree that is not as its map says is red, and so is a circle in it."""

import pytest
from guards import house

MAP = """# Contributing

## The house

| where | what lives there |
|---|---|
| `src/selfattn/` | mechanisms |
| `src/selfattn/doctor/**/` | the doctor, with `tools/` in another cell |
| `src/selfattn/__init__.py` | the door |
| `tools/` `tools/setup/` | tools |

## To add a chapter
"""
FILES = {
    "CONTRIBUTING.md": MAP,
    "src/selfattn/masks.py": "import torch\n",
    "src/selfattn/layers.py": "from selfattn import masks\n",
    "src/selfattn/__init__.py": "from selfattn.doctor.kinds import a\n",
    "src/selfattn/doctor/kinds/a.py": "from selfattn.masks import f\n",
    "src/selfattn/doctor/b.py": "import selfattn.doctor.kinds.a\n",
    "src/selfattn/doctor/kinds/softmax/kind.py": "",
    "src/selfattn/doctor/kinds/norms/kind.py": "",
    "tools/setup/prepare.py": "def f():\n    import tools.run\n",
    "tools/run.py": "from selfattn.doctor import b\n",
}


def red(root):
    """The names of the guards that find something, and what they find."""
    guards = (
        house.unmapped,
        house.stale,
        house.imports_of_later_lines,
        house.circles,
        house.families_apart,
    )
    return {g.__name__: found for g in guards if (found := g(root))}


@pytest.fixture
def tree(tmp_path):
    """A tree that keeps to its map; and a way to write a file of it anew."""

    def write(name, text):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, "utf-8")
        return red(tmp_path)

    for name, text in FILES.items():
        write(name, text)
    assert red(tmp_path) == {}
    return write


def test_a_folder_on_no_line_is_red(tree):
    found = tree("src/selfattn/labs/masks.js", "")
    assert found == {"unmapped": ["src/selfattn/labs/: on no line of the map"]}


def test_a_line_for_nothing_is_red(tree):
    found = tree("CONTRIBUTING.md", MAP.replace("setup/` |", "setup/` `x/` |"))
    assert found == {"stale": ["x/: not in the tree"]}


def test_a_room_that_stands_there_twice_is_red(tree):
    text = MAP.replace("`tools/` `", "`tools/` `src/selfattn/` `")
    assert tree("CONTRIBUTING.md", text)["stale"] == [
        "src/selfattn/: twice on the map"
    ]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("src/selfattn/masks.py", "from selfattn.doctor.kinds import a\n"),
        ("src/selfattn/layers.py", "from selfattn import f\n"),
        ("src/selfattn/masks.py", "def f():\n    import tools.run\n"),
        ("src/selfattn/doctor/b.py", "from tools.setup import prepare\n"),
    ],
)
def test_an_import_of_a_later_line_is_red(tree, name, text):
    (found,) = tree(name, text)["imports_of_later_lines"]
    assert found.startswith(f"{name}: imports ")


def test_a_kind_that_imports_another_familys_is_red(tree):
    name = "src/selfattn/doctor/kinds/norms/kind.py"
    text = "from selfattn.doctor.kinds.softmax import kind\n"
    (found,) = tree(name, text)["families_apart"]
    assert found.startswith(f"{name}: imports ")


def test_a_circle_within_a_room_is_red(tree):
    found = tree("src/selfattn/masks.py", "from selfattn.layers import f\n")
    (circle,) = found.pop("circles")
    assert "src/selfattn/masks.py" in circle and found == {}
