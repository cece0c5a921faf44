"""Show an example of code without the blank line at its end.

A doctest in Markdown needs a blank line after its last output, or it takes
the fence for output. On the page that line is only a gap.
"""

from docutils import nodes
from sphinx.transforms.post_transforms import SphinxPostTransform


class EndExamples(SphinxPostTransform):
    """Cut the blank lines at the end of each block of code."""

    default_priority = 900
    formats = ("html",)

    def run(self, **kwargs):
        """Go through one page's blocks of code."""
        for block in self.document.findall(nodes.literal_block):
            text = block.astext()
            if block.rawsource == text and text.endswith("\n"):
                # Sphinx colours a block only if its text is its source.
                block.rawsource = text.rstrip("\n")
                block[:] = [nodes.Text(block.rawsource)]


def setup(app):
    """Register the transform."""
    app.add_post_transform(EndExamples)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
