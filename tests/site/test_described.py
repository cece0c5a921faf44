"""Each page says in its head what it is about, in words of its own."""

from guards import site_files


def test_every_page_has_a_description_of_its_own(site):
    found = {}
    for path in sorted((site / "book").rglob("*.html")):
        page = site_files.parse(path)
        (said,) = page.select("meta[name=description]")
        assert 40 <= len(said["content"]) <= 200, path
        (shared,) = page.select("meta[property='og:description']")
        assert shared["content"] == said["content"]
        (book,) = page.select("meta[property='og:site_name']")
        assert book["content"] == "Self-Attention, Verified"
        assert page.select_one("meta[property='og:title']")["content"]
        assert page.title.string.count("Self-Attention, Verified") == 1
        found[said["content"]] = path
    assert len(found) == len(list((site / "book").rglob("*.html")))
