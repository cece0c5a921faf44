"""What a page is described by: in so many letters, and where it stands."""

from described import MOST, beginning, description, shortened, tags, told_of
from docutils import nodes

LONG = "Attention is an average. " * 9


def page(*texts, formula=False):
    document = nodes.section()
    document += nodes.paragraph(
        "", "About 3 minutes.", classes=["reading-time"]
    )
    for text in texts:
        one = nodes.paragraph("", text)
        if formula:
            one += nodes.math("", "d_k")
        document += one
    return document


def test_what_is_long_ends_with_a_sentence_or_a_word():
    assert shortened("Short.") == "Short."
    assert len(shortened(LONG)) <= MOST
    assert shortened(LONG).endswith("average.")
    assert shortened("word " * 60).endswith("word …")
    assert all(len(shortened("x" * n + " ab" * 90)) <= MOST for n in range(9))


def test_a_page_begins_with_its_first_paragraph():
    assert beginning(page("One.", "Two.")) == "One."
    assert beginning(page("One.", formula=True)) == ""
    assert description(page("One."), "Say it.") == "Say it. One."
    assert description(page("One, two."), "One.") == "One, two."


def test_addresses_are_told_where_the_site_has_one():
    told = told_of("Masks", "Write <masks>.", "The book")
    assert not any("https://" in content for content in told.values())
    assert 'content="Write &lt;masks&gt;."' in tags(told)
    site = "https://someone.github.io/book/"
    told = told_of("Masks", "Write.", "The book", site, "book/masks")
    assert told["og:url"] == f"{site}book/masks.html"
    assert told["og:image"].startswith(site)
    assert '<meta property="og:title" content="Masks" />' in tags(told)
