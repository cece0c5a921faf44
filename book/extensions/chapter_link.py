"""A link to a chapter, which shows the chapter's title; and that title."""

import json
import re
from pathlib import Path

from docutils import nodes
from sphinx import addnodes

TITLE = re.compile(r"^# (.+)$", re.MULTILINE)


def chapter_link(name: str) -> addnodes.pending_xref:
    """The link to the chapter of this file name: "masks", say."""
    return addnodes.pending_xref(
        "",
        nodes.inline("", name),
        refdomain="std",
        reftype="doc",
        reftarget=f"/book/{name}",
        refexplicit=False,  # so it shows the chapter's title
        refwarn=True,
    )


def title_of(page: Path) -> str:
    """A chapter's title, as its first line has it."""
    text = page.read_text("utf-8")
    if page.suffix == ".ipynb":
        text = "".join(json.loads(text)["cells"][0]["source"])
    return TITLE.search(text)[1]
