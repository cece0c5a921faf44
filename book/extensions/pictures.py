"""Tell the browser how large a picture is before it has it.

Without a width and a height the text below a picture jumps down when the
picture arrives. And a picture too wide for a phone is marked, so that
custom.css can let it scroll instead of making its labels too small to read.
"""

import struct
from pathlib import Path

from docutils import nodes

WIDE = 640  # pixels: several panels side by side, rather than one
SIGNATURE = b"\x89PNG\r\n\x1a\n"


def png_size(path):
    """Width and height of a PNG file in pixels; None if it is no PNG."""
    with path.open("rb") as file:
        head = file.read(24)
    if not head.startswith(SIGNATURE):
        return None
    return struct.unpack(">II", head[16:24])


def visit_image(self, node):
    """Add the size to the image that the theme's writer made."""
    path = Path(self.builder.srcdir, node["uri"])
    size = png_size(path) if path.is_file() else None
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
