"""Code in colours, of which the commonest is that of all code.

Pygments puts every name, bracket and space into a span of its own, also where
its style gives them the colour that they have without: half of the elements
of a page. Those spans go; what is coloured stays.
"""

import re

PLAIN = ("n", "nn", "p", "w")  # names, modules, punctuation, white space
SPAN = re.compile(rf'<span class="(?:{"|".join(PLAIN)})">([^<]*)</span>')


def without_plain_spans(app, page, template, context, doctree):
    """Take the spans that colour nothing out of a page's code."""
    if "body" in context:
        context["body"] = SPAN.sub(r"\1", context["body"])


def setup(app):
    """Register the hook."""
    app.connect("html-page-context", without_plain_spans)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
