"""The .venv of this book: where it is, and whether it is whole.

Like `prepare`, which it serves, it is for any Python 3 from 3.6 on.
"""

import contextlib
import csv
import glob
import json
import os
import subprocess
import time

TOOLS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ROOT = os.path.dirname(TOOLS)
VENV = os.path.join(ROOT, ".venv")
MARK = os.path.join(VENV, "installed.json")
LOG = os.path.join(VENV, "setup.log")
WINDOWS = os.name == "nt"
PYTHON = os.path.join(
    VENV, *(["Scripts", "python.exe"] if WINDOWS else ["bin", "python"])
)
OLDEST, NEWEST = (3, 11), (3, 13)


class MissingError(Exception):
    """Something is not there; the message says what, and how to get it."""


def say(text):
    """Print now, not when the run is over."""
    print(text, flush=True)


def run(command, patience=30):
    """Run a command with its output in the log; return code and output."""
    with open(LOG, "wb") as log:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=dict(os.environ, PIP_USER="0"),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        start = time.time()
        try:
            while process.poll() is None:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(patience)
                    break
                say(f"  ... still at it after {time.time() - start:.0f} s")
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
    with open(LOG, encoding="utf-8", errors="replace") as log:
        return process.returncode, log.read()


def succeeds(command):
    """Whether a command exits with zero; whatever it says is not shown."""
    with open(os.devnull, "r+b") as nothing:
        try:
            return not subprocess.call(
                command, stdin=nothing, stdout=nothing, stderr=nothing
            )
        except OSError:
            return False


def last(output, lines=12):
    """The end of what a command said, which is where it says why."""
    return "\n".join("  | " + x for x in output.splitlines()[-lines:])


def version_of(python):
    """(major, minor) of an interpreter, or None if it does not run."""
    code = "import sys; print(*sys.version_info[:2])"
    try:
        out = subprocess.check_output(
            [python, "-c", code], stderr=subprocess.DEVNULL
        )
        major, minor = out.split()
        return int(major), int(minor)
    except (OSError, ValueError, subprocess.CalledProcessError):
        return None


def dotted(version):
    """(3, 11) as people write it."""
    return ".".join(map(str, version))


def marks():
    """What .venv is known to hold; an unmarked one may be the reader's own."""
    try:
        with open(MARK, encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError):
        return {"root": ROOT}


def remember(installed):
    """Write the mark, whole or not at all."""
    with open(MARK + ".new", "w", encoding="utf-8") as file:
        json.dump(dict(installed, root=ROOT), file)
    os.replace(MARK + ".new", MARK)


def forget():
    """Take the mark away: from here on .venv is not known to be whole."""
    with contextlib.suppress(OSError):
        os.remove(MARK)


def damaged():
    """Packages in .venv that were not written to their end.

    pip writes a package's RECORD last, and in it the size of each file.
    """
    found = []
    for lib in ("lib/python*/site-packages", "Lib/site-packages"):
        for info in glob.glob(os.path.join(VENV, lib, "*.dist-info")):
            try:
                record = os.path.join(info, "RECORD")
                with open(record, encoding="utf-8", newline="") as rows:
                    for path, _, size in csv.reader(rows):
                        path = os.path.join(info, os.pardir, path)
                        if size and os.path.getsize(path) != int(size):
                            raise ValueError(path)
            except (OSError, ValueError):
                found.append(info)
    return found


def usable():
    """Whether .venv has a Python and a pip, in this place, and whole."""
    version = version_of(PYTHON)
    if version is None or version < OLDEST or marks().get("root") != ROOT:
        return False
    if any(os.path.basename(d).startswith("pip-") for d in damaged()):
        return False
    return succeeds([PYTHON, "-m", "pip", "--version"])
