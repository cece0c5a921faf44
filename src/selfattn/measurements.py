"""Read the measurements that are committed with the book.

They lie in ``book/measurements``, one JSON file a chapter, each with the
command that made it, the hardware, the versions, the seeds and the commit.
Runs that were added, the last ones, have a provenance of their own: `later`.
"""

import json
import re
from pathlib import Path

from selfattn.signatures import checked

PACKAGE = Path(__file__).parent
FOLDERS = (
    PACKAGE / "measured",  # where a wheel carries them
    PACKAGE.parents[1] / "book" / "measurements",  # where they are written
)
NAME = re.compile(r"[\w-]{1,99}")


@checked
def measured(chapter: str) -> dict:
    """What was measured for a chapter, with its provenance.

    Args:
        chapter: the chapter's name, as in its file.

    Raises:
        ValueError: if nothing is committed under that name.

    >>> measured("dot_product")["command"]
    'python -m tools.measure.experiments dot_product'
    """
    for folder in FOLDERS:
        path = folder / f"{chapter}.json"
        if NAME.fullmatch(chapter) and path.is_file():
            return json.loads(path.read_text(encoding="utf-8"))
    raise ValueError(
        "measurements are named after their chapter, but there is no "
        f"{chapter}.json in {' or '.join(str(f) for f in FOLDERS)}"
    )
