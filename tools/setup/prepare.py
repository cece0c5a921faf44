"""Make .venv, and install into it what one command of this book needs.

    python3 -m tools.setup.prepare book     what builds the site; no torch
    python3 -m tools.setup.prepare test     all that verifies it, and a browser
    python3 -m tools.setup.prepare lab      all that runs the notebooks

A second run finds its mark in .venv and does nothing. A run that was broken
off leaves no mark, and the next one mends what it left. Only the standard
library, and only what Python 3.6 can read: an old Python has to get as far as
saying that it is too old.
"""

import argparse
import contextlib
import os
import shutil
import signal
import sys

from tools.setup.browser import ensure_browser
from tools.setup.environment import (
    NEWEST,
    OLDEST,
    ROOT,
    VENV,
    MissingError,
    dotted,
    forget,
    last,
    marks,
    remember,
    run,
    say,
    succeeds,
    usable,
    version_of,
)
from tools.setup.packages import fingerprint, install


def main(arguments=None):
    """Read the command line, and turn each failure into a few plain words."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kind", choices=["book", "test", "lab"])
    parser.add_argument(
        "--newest", action="store_true", help="the newest allowed packages"
    )
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, interrupt)
    try:
        with alone():
            prepare(options.kind, options.newest)
    except MissingError as missing:
        print(f"\n{missing}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(
            "\nBroken off. Run the same command again: it goes on from here.",
            file=sys.stderr,
        )
        return 130
    except OSError as error:
        print(f"\nThe set-up could not go on: {error}", file=sys.stderr)
        return 1
    return 0


def prepare(kind, newest=False):
    """Do all that one kind of work needs, or nothing if it is done."""
    packages = "book" if kind == "book" else "test"
    if newest or not done(packages):
        if not usable():
            make_environment(find_python(candidates()))
        install(packages, newest)
    if kind == "test":
        ensure_browser()


def done(packages):
    """Whether an earlier run did all of this, which is quickly seen."""
    known = marks()
    here = known.get("root") == ROOT
    return here and known.get(packages) == fingerprint(packages)


def candidates():
    """Interpreters to try, in order."""
    minors = range(NEWEST[1], OLDEST[1] - 1, -1)
    named = [f"python3.{minor}" for minor in minors]
    return [sys.executable, *named, "python3", "python"]


def find_python(names):
    """The first interpreter that will do, those that were tried first.

    Raises:
        MissingError: if all are too old, or there is none.
    """
    seen = [(name, version_of(name)) for name in names]
    fits = [(n, v) for n, v in seen if v and v >= OLDEST]
    for name, version in fits:
        if version <= NEWEST:
            return name
    if fits:
        name, version = fits[0]
        say(f"Python {dotted(version)} is newer than any this was tried on.")
        return name
    old = sorted({dotted(v) for _, v in seen if v})
    raise MissingError(
        f"The book needs Python {dotted(OLDEST)} or newer; found: "
        f"{', '.join(old) if old else 'none'}.\nGet one from "
        "https://www.python.org/downloads/ or your system's packages "
        f"(python{dotted(NEWEST)}),\nor name one that is elsewhere: "
        "make book PYTHON=/path/to/python3"
    )


def make_environment(python):
    """A fresh .venv, in place of any that is there.

    Raises:
        MissingError: if this Python lacks what makes one.
    """
    version = dotted(version_of(python))
    for module in ("venv", "ensurepip"):
        if not succeeds([python, "-c", "import " + module]):
            raise MissingError(
                f"{python} has no module {module}, so it cannot make .venv.\n"
                "On Debian and Ubuntu, get it with: "
                f"sudo apt-get install python{version}-venv"
            )
    forget()
    if os.path.islink(VENV) or os.path.isfile(VENV):
        os.remove(VENV)
    elif os.path.isdir(VENV):
        say("Clearing away a .venv that is not whole, or not made here.")
        shutil.rmtree(VENV)
    say(f"Making .venv with Python {version}.")
    os.mkdir(VENV)
    code, output = run([python, "-m", "venv", VENV])
    if code:
        raise MissingError(f"{python} could not make .venv:\n{last(output)}")
    remember({})


@contextlib.contextmanager
def alone():
    """Let one set-up run at a time, where the system can hold a lock."""
    with open(__file__, "rb") as file:
        with contextlib.suppress(ImportError, OSError):
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def interrupt(*_):
    """Take a request to end like Ctrl-C, so that pip is ended too."""
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
