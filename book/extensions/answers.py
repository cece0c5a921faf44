"""A place for an answer, under each question whose answer is a number.

In a notebook such a question is answered in a cell that calls ``check``. On
the page, which has no kernel, ``answers.js`` does the same with what stands in
``book/answers.json``, written from the exercises by `tools.build.answers`.
"""

import json
import re
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx

CHECKED = re.compile(r'\bcheck\(.*exercise="([\w/]+)"')
SCRIPT = "answers.js"


class Asked(nodes.General, nodes.Element):
    """A place for an answer."""


def open_place(writer, node: Asked) -> None:
    """What the script must know, and nothing to be seen without it."""
    record = json.dumps(node["record"], ensure_ascii=False)
    known = record.replace("<", "\\u003c")
    writer.body.append(
        f'<div class="answer-place" data-exercise="{node["exercise"]}">'
        f'<script type="application/json">{known}</script>\n'
    )


def close_place(writer, node: Asked) -> None:
    """The end of the place."""
    writer.body.append("</div>\n")


def records(app: Sphinx) -> dict[str, dict]:
    """What is known of each exercise; nothing where there is no file."""
    path = Path(app.srcdir, "book", "answers.json")
    return json.loads(path.read_text("utf-8")) if path.exists() else {}


def place_answers(app: Sphinx, document: nodes.document, name: str) -> None:
    """Put a place above the first cell that checks each answer."""
    known = records(app)
    for code in list(document.findall(nodes.literal_block)):
        found = CHECKED.search(code.astext())
        record = known.pop(found[1], None) if found else None
        if record is None:
            continue
        cell = code
        while "cell" not in cell.get("classes", []):
            cell = cell.parent
        place = Asked(exercise=found[1], record=record)
        cell.parent.insert(cell.parent.index(cell), place)


def add_script(app: Sphinx, page: str, template: str, context, tree) -> None:
    """The script, on pages that ask something."""
    if tree is not None and next(tree.findall(Asked), None):
        app.add_js_file(SCRIPT, defer="defer")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the place and the hooks."""
    app.add_node(Asked, html=(open_place, close_place))
    app.connect("doctree-resolved", place_answers)
    app.connect("html-page-context", add_script)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
