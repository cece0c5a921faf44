"""A notebook for which a reader would wait too long is named."""

from tools.verify.slowest import seconds, too_slow


def test_a_slow_notebook_is_red(tmp_path):
    report = tmp_path / "report.xml"
    case = '<testcase classname="book.slow.ipynb" name="Cell 0" time="{}"/>'
    report.write_text(f"<a>{case.format(31.0)}{case.format(30.0)}</a>")
    assert too_slow(seconds(report))
    report.write_text(f"<a>{case.format(30.0)}{case.format(29.0)}</a>")
    assert too_slow(seconds(report)) == []
