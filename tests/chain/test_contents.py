"""A page or a chapter that lacks its other half turns the tree red."""

import pytest
from guards import contents


@pytest.fixture
def tree(tmp_path):
    """A small book with a chapter, its module and its test."""
    for name in (
        "book/intro.md",
        "book/masks.ipynb",
        "src/selfattn/masks.py",
        "tests/test_masks.py",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    contents_file = tmp_path / "_toc.yml"
    contents_file.write_text(
        "root: book/intro\nparts: [{chapters: [{file: book/masks}]}]\n"
    )
    assert contents.orphans(tmp_path) == contents.three_places(tmp_path) == []
    return tmp_path


@pytest.mark.parametrize("name", ["book/masks.ipynb", "book/intro.md"])
def test_a_listed_page_that_is_missing_is_red(tree, name):
    (tree / name).unlink()
    assert len(contents.orphans(tree)) == 1


def test_an_unlisted_page_is_red(tree):
    (tree / "book/lost.ipynb").touch()
    assert contents.orphans(tree) == ["book/lost: in no table of contents"]


@pytest.mark.parametrize(
    "name", ["src/selfattn/masks.py", "tests/test_masks.py"]
)
def test_a_chapter_without_module_or_test_is_red(tree, name):
    (tree / name).unlink()
    assert len(contents.three_places(tree)) == 1
