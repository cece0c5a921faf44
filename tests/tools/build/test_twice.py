"""A build elsewhere: what it is made of, and what differs."""

from tools.build import twice
from tools.build.website import INPUTS, ROOT, digest


def test_all_that_a_site_is_made_of_is_copied(tmp_path):
    twice.copy_sources(tmp_path)
    assert digest([ROOT / name for name in INPUTS], ROOT) == digest(
        [tmp_path / name for name in INPUTS], tmp_path
    )
    assert (tmp_path / "tools" / "build" / "website.py").is_file()


def test_a_file_that_differs_or_is_on_one_side_alone_is_named(tmp_path):
    one, other = tmp_path / "one", tmp_path / "other"
    for folder in (one, other):
        (folder / "book").mkdir(parents=True)
        (folder / "book" / "same.html").write_text("a")
    assert twice.differing(one, other) == []
    (one / "book" / "path.html").write_text(str(one))
    (other / "book" / "path.html").write_text(str(other))
    (one / "gone.html").write_text("")
    (other / "new.html").write_text("")
    assert twice.differing(one, other) == [
        "book/path.html",
        "gone.html",
        "new.html",
    ]
