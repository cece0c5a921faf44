"""Tell the browser how large a picture is before it has it.

Without a width and a height the text below a picture jumps down when the
picture arrives. And a picture too wide for a phone is marked, so that
custom.css can let it scroll instead of making its labels too small to read.
A drawing of `selfattn.plots.drawing` becomes part of the page, so that it has
the page's colours, in the light and in the dark.
"""

from html import escape
from pathlib import Path

import imagesize
from docutils import nodes

DRAWING = 'class="drawing"'
WIDE = 640  # pixels: several panels side by side, rather than one


def size_of(path):
    """Width and height of a picture in pixels; None if it is none."""
    size = imagesize.get(path) if path.is_file() else (-1, -1)
    return size if min(size) > 0 else None


def drawing(path):
    """The text of a drawing of ours; nothing of another picture."""
    if path.suffix != ".svg" or not path.is_file():
        return ""
    text = path.read_text("utf-8")
    return text if DRAWING in text else ""


def visit_image(self, node):
    """Add the size to the image that the theme's writer made."""
    path = Path(self.builder.srcdir, node["uri"])
    if svg := drawing(path):
        words = escape(node.get("alt", ""))
        self.body.append(
            f'<div class="drawn" role="img" aria-label="{words}">{svg}</div>'
        )
        raise nodes.SkipNode
    size = size_of(path)
    if size and size[0] > WIDE:
        node["classes"].append("wide")
    type(self).visit_image(self, node)
    if size:
        told = '<img width="{}" height="{}" '.format(*size)
        self.body[-1] = self.body[-1].replace("<img ", told, 1)


def depart_image(self, node):
    """As ever."""
    type(self).depart_image(self, node)


def setup(app):
    """Take over how images are written."""
    app.add_node(nodes.image, override=True, html=(visit_image, depart_image))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
