"""What is measured of a page's coming: a paint, a jump, compressed bytes."""

from tools.measure import paint

STILL = "<p>{words}</p>"
JUMPS = """<div id="late"></div><p>{words}</p>
<script>setTimeout(() => {{ late.style.height = "300px"; }}, 100)</script>"""


def test_a_page_that_jumps_is_told_from_one_that_does_not(chromium, tmp_path):
    words = "attention " * 400
    pages = {"still.html": STILL, "jumps.html": JUMPS}
    for name, body in pages.items():
        text = "<!DOCTYPE html><html><body>" + body.format(words=words)
        (tmp_path / name).write_text(text)
    server = paint.serve(tmp_path)
    home = f"http://127.0.0.1:{server.server_port}/"
    looks = {name: paint.look(chromium, home + name, "wide") for name in pages}
    server.shutdown()
    server.server_close()
    still, jumps = looks.values()
    assert still["shifted"] == 0 < jumps["shifted"]
    for one in (still, jumps):
        assert one["painted"] > 0.15  # a question alone takes as long
        assert one["what"] == "P"
        assert 0 < one["bytes"] < len(words)
    line = paint.told("still.html", "wide", [still])
    assert line.split()[3] == "0.000" and "still.html" in line
    assert paint.too_late([jumps], within=99)
    assert paint.too_late([still], within=0.1)
    assert not paint.too_late([still], within=99)


def test_the_heaviest_pages_are_those_with_most_text(tmp_path):
    (tmp_path / "book").mkdir()
    for name, length in (("a", 10), ("b", 5000), ("c", 900)):
        text = "".join(chr(97 + i * i % 26) for i in range(length))
        (tmp_path / "book" / f"{name}.html").write_text(text * (length // 9))
    found = paint.heaviest(tmp_path, 2)
    assert found == ["book/b.html", "book/c.html"]
