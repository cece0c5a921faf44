"""Labs on the site: their scripts, their place, their still picture.

A notebook stores a lab's view, its settings and a still picture. On the page
they share one place: `host.js` draws the lab there, and the picture stands
there without JavaScript, in print, and when a lab fails. Only a page that
shows a lab loads its script, which holds the module as text: at once, or, if
it brings a trained model along, when the reader comes near. A lab that needs
no theory stands in small at its chapter's start, too.
"""

import hashlib
import importlib.util
import json
import re
from pathlib import Path

from docutils import nodes
from myst_nb.sphinx_ import NbMetadataCollector
from sphinx.errors import ExtensionError
from sphinx.transforms.post_transforms import SphinxPostTransform

VIEW = "application/vnd.jupyter.widget-view+json"
COMMENT = re.compile(r"^ *//.*\n", re.MULTILINE)
LABS = Path(__file__).parents[2] / "src" / "selfattn" / "labs"
MUCH = 80_000  # characters of a script: more is fetched when it is needed
# Labs that a chapter begins with, in small: which part is the picture, and how
# high they are, in a wide window and on a phone.
SMALL = {
    "origins": (".lab-pair", 416, 516),
    "dot_product": (".lab-pair", 512, 560),
    "masks": (".lab-pair", 549, 580),
    "multihead": (".lab-words", 354, 580),
    "models": (".lab-pair", 306, 400),
    "window": (".lab-pair", 412, 490),
    "sparse": (".lab-pair", 570, 590),
    "swin": (".lab-pair", 437, 550),
}


def load_esm():
    """The joiner, by its path: the site is built without torch."""
    spec = importlib.util.spec_from_file_location(
        "esm", LABS / "machinery" / "esm.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


esm = load_esm()


class LabPlace(nodes.General, nodes.Element):
    """Where a lab stands: its view, then its still picture."""


def open_place(writer, node):
    """A plain element that names the lab."""
    later = f' data-script="{node["later"]}"' if node["later"] else ""
    writer.body.append(
        f'<div class="lab-place" data-lab="{node["lab"]}"{later}>\n'
    )


def close_place(writer, node):
    """The end of the place."""
    writer.body.append("</div>\n")


def small(stem):
    """The place of a lab in small, with its height, so that nothing jumps."""
    picture, wide, narrow = SMALL[stem]
    html = (
        f'<div class="lab-in-small not-on-paper" data-small="{stem}"'
        f' data-shows="{picture}" role="group" aria-label="The lab, in small"'
        f' style="--wide:{wide}px;--narrow:{narrow}px">'
        "<p>This chapter’s lab, in small. "
        f'<a href="#lab={stem}">All of it, further down</a></p></div>\n'
    )
    return nodes.raw("", html, format="html")


class PlaceLabs(SphinxPostTransform):
    """Put each lab's picture beside its view, before one of them is chosen."""

    default_priority = 3  # MyST-NB chooses at 4
    formats = ("html",)

    def run(self, **kwargs):
        """Fill the widget part of each bundle with a `LabPlace`."""
        for view in list(self.document.findall(is_view)):
            state = self.state_of(view)
            stem = state["_anywidget_id"].split(".")[-2]
            pictures = [
                image.deepcopy() for image in view.parent.findall(nodes.image)
            ]
            if len(pictures) != 1:
                raise ExtensionError(
                    f"the lab {stem} has no still picture in its notebook"
                )
            for image in pictures:
                image["classes"] += ["lab-still", "dark-light"]
                image.setdefault("alt", state["alt"])
            place = LabPlace(lab=stem, later=fetched_later(stem))
            place += [*view.children, *pictures]
            view.children = []
            view += place
            if stem in SMALL:
                self.begin_with(stem)

    def begin_with(self, stem):
        """Put the lab in small before the first heading below the title."""
        (chapter,) = [
            one for one in self.document if isinstance(one, nodes.section)
        ]
        first = next(
            i for i, e in enumerate(chapter) if isinstance(e, nodes.section)
        )
        chapter.insert(first, small(stem))

    def state_of(self, view):
        """The traits of the lab that a view shows."""
        files = NbMetadataCollector.get_js_files(self.env, self.env.docname)
        _, options = files["ipywidgets_state"]
        script = next(view.findall(nodes.raw)).astext()
        model_id = json.loads(script.split(">")[1].split("<")[0])["model_id"]
        return json.loads(options["body"])["state"][model_id]["state"]


def is_view(node):
    """Whether a node is the widget part of a bundle of outputs."""
    return isinstance(node, nodes.container) and node.get("mime_type") == VIEW


def labs_of(doctree):
    """The labs that a page shows, each once."""
    return sorted({node["lab"] for node in doctree.findall(LabPlace)})


def script(stem):
    """A classic script that hands a lab's module over, without comments."""
    bare = COMMENT.sub("", esm.module_text(stem))
    text = json.dumps(bare, ensure_ascii=False)
    return f'(window.selfattnLabs ??= {{}})["{stem}"] =\n{text};\n'


def fetched_later(stem):
    """The address, beside `host.js`, of a script too heavy to begin with."""
    text = script(stem)
    if len(text) <= MUCH:
        return ""
    return f"{stem}.js?v={hashlib.sha256(text.encode()).hexdigest()[:8]}"


def add_scripts(app, pagename, templatename, context, doctree):
    """The scripts and the style sheet of the labs that this page shows."""
    if doctree is None or not (stems := labs_of(doctree)):
        return
    folder = Path(app.outdir) / "_static" / "labs"
    folder.mkdir(parents=True, exist_ok=True)
    for stem in stems:
        (folder / f"{stem}.js").write_text(script(stem), encoding="utf-8")
        if not fetched_later(stem):
            app.add_js_file(f"labs/{stem}.js", defer="defer")
    css = (LABS / esm.STYLE).read_text(encoding="utf-8")
    (folder / "lab.css").write_text(css, encoding="utf-8")
    app.add_css_file("labs/lab.css")


def setup(app):
    """Register the transform, the node and the hook."""
    app.add_node(LabPlace, html=(open_place, close_place))
    app.add_post_transform(PlaceLabs)
    app.connect("html-page-context", add_scripts)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
