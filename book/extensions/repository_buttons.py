"""Buttons that lead to the repository, when the build knows where it is.

The address comes from the environment, never from this project, so that a
fork's book leads to the fork:

    BOOK_REPOSITORY_URL     https://github.com/<owner>/<name>
    BOOK_REPOSITORY_BRANCH  main, unless it says otherwise

Without an address there is no button and nothing is dead. Colab opens no
address but a repository's. What it opens are the copies that install the
package (see ``take_along``): where the site is published, they are put on a
branch of their own, with nothing before them.
"""

import os
from urllib.parse import urlparse

COLAB = "https://colab.research.google.com"
TAKEN = "taken"  # the branch with the copies; see publish.yml
HOSTS = ("github", "gitlab", "bitbucket")  # those that the theme knows


def repository_options(environ):
    """The theme's options for this environment.

    Args:
        environ: a mapping of environment variables.

    Raises:
        ValueError: if the address is no https address of a repository.
    """
    url = environ.get("BOOK_REPOSITORY_URL", "").strip()
    url = url.rstrip("/").removesuffix(".git")
    options = {
        "repository_url": url,
        "repository_branch": environ.get("BOOK_REPOSITORY_BRANCH", "main"),
        "path_to_docs": "",
        "use_repository_button": bool(url),
        "use_issues_button": "bitbucket" not in url and bool(url),
        "launch_buttons": {},
    }
    if not url:
        return options
    parts = urlparse(url)
    known = any(host in (parts.hostname or "") for host in HOSTS)
    if parts.scheme != "https" or parts.path.count("/") < 2 or not known:
        raise ValueError(
            "BOOK_REPOSITORY_URL must look like https://<host>/<owner>/<name>"
            f" with a host of {', '.join(HOSTS)}, but is {url!r}"
        )
    if parts.hostname == "github.com":  # the only host that Colab opens
        options["launch_buttons"] = {"colab_url": COLAB}
    return options


def set_options(app, config):
    """Before the theme reads its options."""
    config.html_theme_options.update(repository_options(os.environ))


def open_the_copies(app, pagename, templatename, context, doctree):
    """The theme's button leads to the branch with the notebooks as written."""
    options = app.config.html_theme_options
    written = f"/blob/{options['repository_branch']}/"
    for group in context.get("header_buttons", []):
        for button in group.get("buttons", []):
            if button.get("url", "").startswith(f"{COLAB}/github/"):
                place, _, name = button["url"].partition(written)
                button["url"] = f"{place}/blob/{TAKEN}/{name}"


def setup(app):
    """Register the hooks."""
    app.connect("config-inited", set_options)
    # After the theme, which adds its buttons at 501.
    app.connect("html-page-context", open_the_copies, priority=600)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
