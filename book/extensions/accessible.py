"""Markup that a screen reader understands, where docutils' is out of date.

docutils marks a bibliography with roles that newer ARIA calls deprecated
(`doc-biblioentry`) inside a list that may hold only list items. Ours is a
plain list. The empty corner of a table is no head. What unfolds a cell is
called what it says, "Show the code". And the site's first page, which only
leads to the book's, is a whole page: with a language, a title and a link.
"""

from html import escape
from pathlib import Path

from docutils import nodes

FRONT_DOOR = """\
<!DOCTYPE html>
<html lang="{language}">
<head>
  <meta charset="utf-8">
  <meta name="viewport" content="width=device-width, initial-scale=1">
  <meta http-equiv="refresh" content="0; url={url}">
  <title>{title}</title>
  <link rel="icon" href="_static/favicon.svg">
</head>
<body><main><h1><a href="{url}">{title}</a></h1></main></body>
</html>
"""

OTHER_WORDS = '<summary aria-label="Toggle hidden content">'  # MyST-NB's


def visit_citation(self, node):
    """Open the list before its first entry, then the entry."""
    if not isinstance(node.previous_sibling(), nodes.citation):
        self.body.append('<div role="list" class="citation-list">\n')
    self.body.append(
        self.starttag(node, "div", classes=["citation"], role="listitem")
    )


def depart_citation(self, node):
    """Close the entry, and the list after its last one."""
    self.body.append("</div>\n")
    following = node.next_node(descend=False, siblings=True)
    if not isinstance(following, nodes.citation):
        self.body.append("</div>\n")


def visit_entry(self, node):
    """A table's empty corner is a cell, but the head of nothing.

    In a table of the class ``stacked`` a cell names its column's head, for
    phones, where the columns stand under each other.
    """
    type(self).visit_entry(self, node)
    if "stacked" in table_of(node)["classes"] and self.body[-1][:3] == "<td":
        head = escape(head_of(node))
        self.body[-1] = f'<td data-head="{head}"' + self.body[-1][3:]
    if not node.astext().strip() and self.body[-1].startswith("<th"):
        self.body[-1] = "<td" + self.body[-1].removeprefix("<th")
        self.context[-1] = "</td>\n"


def table_of(node):
    """The table that holds a cell."""
    while not isinstance(node, nodes.table):
        node = node.parent
    return node


def head_of(entry):
    """What stands at the head of a cell's column."""
    (head,) = table_of(entry).findall(nodes.thead)
    return head[0][entry.parent.index(entry)].astext()


def depart_entry(self, node):
    """As ever."""
    type(self).depart_entry(self, node)


def call_folds_by_their_words(app, pagename, templatename, context, doctree):
    """No label in place of the words that stand on a fold."""
    if "body" in context:
        context["body"] = context["body"].replace(OTHER_WORDS, "<summary>")


def write_front_door(app, exception):
    """The page at the site's address, which leads to the book's first."""
    if exception or app.builder.format != "html":
        return
    page = FRONT_DOOR.format(
        language=app.config.language,
        title=escape(app.config.html_title),
        url=app.builder.get_target_uri(app.config.root_doc),
    )
    Path(app.outdir, "index.html").write_text(page, encoding="utf-8")


def setup(app):
    """Take over how these are written."""
    app.add_node(nodes.entry, override=True, html=(visit_entry, depart_entry))
    app.connect("html-page-context", call_folds_by_their_words)
    app.connect("build-finished", write_front_door, priority=900)
    app.add_node(
        nodes.citation,
        override=True,
        html=(visit_citation, depart_citation),
    )
    return {"parallel_read_safe": True, "parallel_write_safe": True}
