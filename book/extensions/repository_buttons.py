"""Buttons that lead to the repository, when the build knows where it is.

The address comes from the environment, never from this project, so that a
fork's book leads to the fork:

    BOOK_REPOSITORY_URL     https://github.com/<owner>/<name>
    BOOK_REPOSITORY_BRANCH  main, unless it says otherwise

Without an address there is no button and nothing is dead.
"""

import os
from urllib.parse import urlparse

COLAB = "https://colab.research.google.com"
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


def setup(app):
    """Register the hook."""
    app.connect("config-inited", set_options)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
