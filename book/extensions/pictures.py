"""Tell the browser how large a picture is before it has it.

Without a width and a height the text below a picture jumps down when the
picture arrives. And a picture too wide for a phone is marked, so that
custom.css can let it scroll instead of making its labels too small to read.
"""

from pathlib import Path

import imagesize
from docutils import nodes

WIDE = 640  # pixels: several panels side by side, rather than one


def size_of(path):
    """Width and height of a picture in pixels; None if it is none."""
    size = imagesize.get(path) if path.is_file() else (-1, -1)
    return size if min(size) > 0 else None


def visit_image(self, node):
    """Add the size to the image that the theme's writer made."""
    size = size_of(Path(self.builder.srcdir, node["uri"]))
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
