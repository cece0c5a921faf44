"""`show_source` shows the source, whole, and nothing but the source."""

import inspect

import pytest

from selfattn import dot_product
from selfattn.source import show_source

FENCE = "`" * 3


def unfenced(shown):
    """What stands between the two fences."""
    first, *lines, last = shown.data.splitlines()
    assert (first, last) == (f"{FENCE}python", FENCE)
    return "\n".join(lines)


@pytest.mark.parametrize(
    "thing", [dot_product.attention_steps, dot_product.Steps, dot_product]
)
def test_the_source_shown_is_the_source_in_the_file(thing):
    lines = unfenced(show_source(thing))
    assert lines == inspect.getsource(thing).rstrip()
    with open(dot_product.__file__, encoding="utf-8") as file:
        assert lines in file.read()


def test_a_reader_gets_the_docstring_too():
    assert "Vaswani et al. (2017)" in unfenced(
        show_source(dot_product.attention_steps)
    )


def test_every_page_shows_it_as_markdown_and_without_markdown_as_text():
    shown = show_source(dot_product.attention_steps)
    assert set(shown.__dict__) >= {"data"}
    assert shown._repr_markdown_() == shown.data


def fenced():
    """A function with a fence of its own: ```."""


def test_a_fence_in_the_source_would_end_ours_and_is_refused():
    with pytest.raises(ValueError, match=r"must hold no code fence.*fenced"):
        show_source(fenced)
