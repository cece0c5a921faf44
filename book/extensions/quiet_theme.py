"""What the theme brings that a page of this book does not need.

Our templates come before the theme's: they load no icon font and no icon
script, and put the logo and the search form into landmarks. The files that
nothing refers to any more are deleted from the site. Every page tells the
browser to fetch nothing from elsewhere.
"""

import shutil
from pathlib import Path

from markupsafe import Markup

TEMPLATES = Path(__file__).parent / "templates"

# Inline scripts set the theme before the first paint, KaTeX sets inline
# styles, the labs import Blobs, and the icons are drawn from data.
CONTENT_POLICY = {
    "default-src": "'self'",
    "script-src": "'self' 'unsafe-inline' blob:",
    "style-src": "'self' 'unsafe-inline'",
    "img-src": "'self' data: blob:",
    "object-src": "'none'",
    "base-uri": "'self'",
    "form-action": "'self'",
}

UNUSED = [
    "vendor",  # Font Awesome
    "locales",
    "scripts/*.map",
    "styles/*.map",
    "webpack-macros.html",
    "sbt-webpack-macros.html",
    "images/logo_binder.svg",
    "images/logo_deepnote.svg",
    "images/logo_jupyterhub.svg",
]


def put_templates_first(app, config):
    """Sphinx takes the first template of a name that it finds."""
    config.templates_path[:0] = [
        str(TEMPLATES),
        str(TEMPLATES / "components"),
    ]


def add_content_policy(app, pagename, templatename, context, doctree):
    """The policy stands before anything that it governs."""
    policy = "; ".join(f"{name} {of}" for name, of in CONTENT_POLICY.items())
    context["metatags"] = (
        '<meta http-equiv="Content-Security-Policy"'
        f' content="{policy}" />\n' + context.get("metatags", "")
    )


def let_scripts_wait(app, pagename, templatename, context, doctree):
    """The page is drawn first: no script of Sphinx's head holds it up.

    But for the options, which an inline script changes at once.
    """
    if doctree is None:  # the search, whose inline scripts call them
        return
    for script in context.get("script_files", []):
        name = str(getattr(script, "filename", "") or "")
        if name and "documentation_options" not in name:
            script.attributes.setdefault("defer", "defer")


def number_paper(app, pagename, templatename, context, doctree):
    """On paper a chapter has its number, too."""
    if "pagetitle" in context:
        context["pagetitle"] = Markup(context["title"]).striptags()


def delete_unused(app, exception):
    """Nothing that no page asks for is published."""
    if exception or app.builder.format != "html":
        return
    # Notes for the next incremental build, with paths of this machine.
    Path(app.outdir, ".buildinfo").unlink(missing_ok=True)
    static = Path(app.outdir) / "_static"
    for pattern in UNUSED:
        for path in static.glob(pattern):
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()


def setup(app):
    """Register the hooks."""
    # Jupyter Book sets it even when nothing that reads it is loaded.
    app.add_config_value("comments_config", {}, "")
    app.connect("config-inited", put_templates_first)
    app.connect("html-page-context", add_content_policy)
    app.connect("html-page-context", let_scripts_wait, priority=900)
    app.connect("html-page-context", number_paper, priority=900)
    # After the theme's own last steps, which write some of these files.
    app.connect("build-finished", delete_unused, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
