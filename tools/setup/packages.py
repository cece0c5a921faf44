"""Install into .venv what the requirement files name.

Like `prepare`, which it serves, it is for any Python 3 from 3.6 on.
"""

import glob
import hashlib
import os
import shutil
import sys
import time

from tools.setup.environment import (
    LOG,
    NEWEST,
    OLDEST,
    PYTHON,
    ROOT,
    VENV,
    MissingError,
    damaged,
    dotted,
    forget,
    last,
    marks,
    remember,
    run,
    say,
    version_of,
)

PULLED_IN = "# What these pull in"  # heads the second part of each file
FILES = {  # the first is installed; a change in any of them counts
    "book": ["requirements-book.txt"],
    "test": ["requirements.txt", "requirements-book.txt", "pyproject.toml"],
}
OFFLINE = (  # what pip says then, in one version or another
    "ConnectionError",
    "ConnectTimeout",
    "ProxyError",
    "SSLError",
    "name resolution",
    "timed out",
)


def fingerprint(kind):
    """What an installation depends on, in one number."""
    total = hashlib.sha256(repr(version_of(PYTHON)).encode())
    for name in FILES[kind]:
        with open(os.path.join(ROOT, name), "rb") as file:
            total.update(file.read())
    return total.hexdigest()


def install(kind, newest=False):
    """Bring .venv to what the requirement files say, and mark it."""
    installed = {} if newest else marks()
    remember({})
    for info in damaged():
        say(f"Mending {os.path.basename(info).split('-')[0]}.")
        shutil.rmtree(info)
    announce(kind)
    start = time.time()
    files = loosened() if newest else os.path.join(ROOT, FILES[kind][0])
    if not newest:
        pip("--no-deps", "-r", files)  # all that it names, without a search
    pip("-r", files)  # and what it leaves to torch
    if kind == "test":
        pip("--no-deps", "--no-build-isolation", "-e", ROOT)
    compile_all()
    if damaged():
        forget()
        raise MissingError(
            "pip says that it is done, but files are not whole: "
            f"{', '.join(map(os.path.basename, damaged()))}.\n"
            "Is the disk full? Make room, then run the same command again."
        )
    if not newest:
        installed[kind] = fingerprint(kind)
    remember(installed)
    say(f"Installed in {time.time() - start:.0f} s.")


def announce(kind):
    """Say what is coming, how large it is and how long it takes."""
    if kind == "book":
        say("Installing what builds the site: 105 MB, about a minute.")
        return
    say("Installing what verifies the book: 510 MB, a few minutes.")
    there = glob.glob(os.path.join(VENV, "*", "*", "*", "torch-*.dist-info"))
    if sys.platform.startswith("linux") and not there:
        say(
            "  On Linux, pip's usual PyTorch brings CUDA: several GB more.\n"
            "  Without an NVIDIA GPU, stop here (Ctrl-C), put a CPU build of\n"
            "  the version in requirements.txt into .venv, as\n"
            "  https://pytorch.org/get-started/locally/ tells, and come back."
        )


def pip(*arguments):
    """Pip install, quiet unless it fails."""
    options = ["--disable-pip-version-check", "--no-compile"]
    code, output = run([PYTHON, "-m", "pip", "install", *options, *arguments])
    if not code:
        return
    if any(words in output for words in OFFLINE):
        why = (
            "pip could not reach its package index. Is this machine online?\n"
            "Behind a proxy, set HTTPS_PROXY; with a mirror, set "
            "PIP_INDEX_URL.\nThen run the same command again."
        )
    elif "No matching distribution" in output:
        why = (
            "pip's package index does not have what is asked for, at least "
            f"not for\nPython {dotted(version_of(PYTHON))} on this system. "
            "The pins are for Python "
            f"{dotted(OLDEST)} to {dotted(NEWEST)}."
        )
    elif "No space left" in output:
        why = "The disk is full. Make room, then run the same command again."
    else:
        why = "pip failed; its words are above, and all of them in " + LOG
    raise MissingError(f"{last(output)}\n\n{why}")


def compile_all():
    """Turn what is installed into byte code, on all cores; pip takes one.

    What packages test themselves with is left out, and the models of
    transformers, some four hundred: nearly none of that is imported here.
    """
    unused = r"[/\\](tests?|transformers[/\\]models)[/\\]"
    for lib in ("lib/python*/site-packages", "Lib/site-packages"):
        for place in glob.glob(os.path.join(VENV, lib)):
            options = ["-q", "-q", "-j", "0", "-x", unused]
            run([PYTHON, "-m", "compileall", *options, place])


def loosened():
    """A requirement file in which the named packages may be newer.

    Those whose comment says `held:` stay, and those that were only pulled in
    are left to pip.
    """
    lines = []
    for name in FILES["test"][:2]:
        with open(os.path.join(ROOT, name), encoding="utf-8") as file:
            named = file.read().split(PULLED_IN)[0].splitlines()
        for line in named:
            if "==" in line:
                held = "held:" in line
                lines.append(line if held else line.replace("==", ">=", 1))
    path = os.path.join(VENV, "newest.txt")
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")
    return path
