"""The report: what was found of an answer, and how it reads.

`record` holds what was found, `rendering` puts it into words, `snippets`
writes the code that shows it, `chapters` says which page explains it, and
`rows` what can be seen of a row of weights that is not right.
`output` writes all of that to wherever it goes, and `progress` what happens
until then.
"""

from selfattn.doctor.report import rendering
from selfattn.doctor.report.record import Difference, Finding, Record

__all__ = ["Difference", "Finding", "Report"]


class Report(Record):
    """What the doctor has to say about one answer."""

    def to_json(self) -> str:
        """The report for programs."""
        return rendering.as_json(self)

    def _repr_html_(self) -> str:
        """The report as a notebook shows it."""
        return rendering.as_html(self)

    def __repr__(self) -> str:
        """The report as text."""
        return rendering.as_text(self)
