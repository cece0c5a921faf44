"""A button that prints all of a page, whatever is folded on it.

It stands beside the theme's, which prints a page as it stands: see
`_static/print.js`.
"""

from docutils import nodes
from sphinx.application import Sphinx

WHOLE = {
    "type": "javascript",
    "javascript": "printWhole()",
    "text": ".pdf, unfolded",
    "tooltip": "Print to PDF, with all that is folded",
    "icon": "fas fa-file-pdf",
    "label": "download-whole-button",
}


def add_button(
    app: Sphinx,
    pagename: str,
    templatename: str,
    context: dict,
    doctree: nodes.document | None,
) -> None:
    """Put it into the menu of what can be downloaded."""
    for group in context.get("header_buttons", []):
        if group["label"] == "download-buttons":
            group["buttons"].append(WHOLE)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the hook, after the theme's own buttons."""
    app.connect("html-page-context", add_button, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
