"""A link to a chapter, which shows the chapter's title."""

from docutils import nodes
from sphinx import addnodes


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
