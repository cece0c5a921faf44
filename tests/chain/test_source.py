"""A breach of the style sheet is red."""

import pytest
from guards import source


@pytest.fixture
def package(tmp_path):
    """A package with one good module, to which others are added."""
    (tmp_path / "efficient").mkdir()

    def red_with(name, text):
        (tmp_path / name).write_text(text, "utf-8")
        guards = (
            source.too_long,
            source.asserts,
            source.undocumented,
            source.named_badly,
            source.imports_backwards,
            source.without_header,
        )
        return [guard.__name__ for guard in guards if guard(tmp_path)]

    good = '"""Masks."""\n\nimport torch\n\n\ndef full():\n    """All."""\n'
    assert red_with("masks.py", good) == []
    return red_with


LONG = '"""M."""\n\n\ndef f():\n    """F."""\n' + "    x = 1\n" * 30
HEADER = '"""M.\n\nComputes:  x\nTime: x\nSupports: x\nReference: x\n"""\n'


@pytest.mark.parametrize(
    ("name", "text", "guard"),
    [
        ("layers.py", LONG, "too_long"),
        ("layers.py", '"""M."""\n' + "x = 1\n" * 221, "too_long"),
        ("layers.py", '"""M."""\nassert True\n', "asserts"),
        ("layers.py", '"""M."""\ndef f(): ...\n', "undocumented"),
        ("layers.py", "x = 1\n", "undocumented"),
        ("layers.py", '"""M."""\nattn = 1\n', "named_badly"),
        ("utils.py", '"""M."""\n', "named_badly"),
        ("strange.py", '"""M."""\n', "imports_backwards"),
        (
            "dot_product.py",
            '"""M."""\nfrom selfattn.layers import x\n',
            "imports_backwards",
        ),
        (
            "efficient/flash.py",
            HEADER + "from selfattn.efficient.window import x\n",
            "imports_backwards",
        ),
        (
            "efficient/flash.py",
            HEADER.replace("Supports", "Takes"),
            "without_header",
        ),
    ],
)
def test_a_breach_of_style_is_red(package, name, text, guard):
    assert guard in package(name, text)


def test_a_test_that_takes_any_error_is_red(tmp_path):
    wide = "with pytest.raises(" + "Exception):\n    f()\n"
    (tmp_path / "test_x.py").write_text(wide)
    assert source.weak_tests(tmp_path)
    (tmp_path / "test_x.py").write_text("assert True\n")
    assert source.weak_tests(tmp_path) == []


def test_words_and_room_between_the_lines_are_not_counted(package):
    words = '"""M.\n\n' + "Much.\n" * 300 + '"""\n' + "# Why.\n\n" * 300
    assert package("layers.py", words + "x = 1\n" * 220) == []


@pytest.mark.parametrize("name", ["site.py", "email/parts.py"])
def test_a_name_that_python_has_is_red(tmp_path, name):
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).touch()
    assert len(source.named_like_pythons(tmp_path)) == 1
