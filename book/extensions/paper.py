"""The menu of what can be downloaded, in words, and a button more.

The theme's buttons say file endings; ours say what one gets. The further one
prints all of a page, whatever is folded on it, beside the theme's, which
prints a page as it stands: see `_static/print.js`.
"""

from docutils import nodes
from sphinx.application import Sphinx

WHOLE = {
    "type": "javascript",
    "javascript": "printWhole()",
    "text": "Print, or PDF, unfolded",
    "tooltip": "Print, or make a PDF, with all that is folded",
    "icon": "fas fa-file-pdf",
    "label": "download-whole-button",
}
WORDS = {  # what the theme's buttons say, and what ours do
    ".ipynb": "Notebook (.ipynb)",
    ".md": "Source (.md)",
    ".pdf": "Print, or PDF",
}


def add_button(
    app: Sphinx,
    pagename: str,
    templatename: str,
    context: dict,
    doctree: nodes.document | None,
) -> None:
    """Put it into the menu of what can be downloaded, and name the others."""
    for group in context.get("header_buttons", []):
        if group["label"] == "download-buttons":
            for button in group["buttons"]:
                button["text"] = WORDS.get(button["text"], button["text"])
            group["buttons"].append(WHOLE)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the hook, after the theme's own buttons."""
    app.connect("html-page-context", add_button, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
