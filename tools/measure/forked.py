"""Run code or tests of a copy in a process that has PyTorch imported already.

Most of a short test run is importing PyTorch and pytest. Here they are
imported once, and each run is a fork of that: nothing of the package, and
nothing of the tests, has been imported in it.
"""

import gc
import os
import signal
import sys
import tempfile
import time
import traceback
from pathlib import Path
from subprocess import CompletedProcess
from typing import TextIO

OURS = ("selfattn", "tools", "tests", "assertions", "hostile", "guards")
TOO_SLOW = 124  # as the command `timeout` says it


def run(
    tree: Path, *arguments: str, limit: float, keep: bool = False
) -> CompletedProcess:
    """``python *arguments`` in `tree`, for `limit` seconds at most.

    Args:
        tree: the copy, whose ``src`` goes before any other.
        arguments: ``-c CODE``, or ``-m pytest ...``.
        limit: then it is ended, with all that it began.
        keep: whether byte code is written. A file that is written again
            within a second, as long as before, would be taken for the old.

    Returns:
        The exit status, 124 if it was too slow, and what was printed.
    """
    import_the_slow_ones()
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            os.setsid()
            sys.stdout = write_to(1, out.fileno())
            sys.stderr = write_to(2, err.fileno())
            os._exit(inside(tree, arguments, keep))
        status = waited_for(child, limit)
        out.seek(0), err.seek(0)
        printed = [stream.read().decode() for stream in (out, err)]
    return CompletedProcess(arguments, status, *printed)


def write_to(number: int, file: int) -> TextIO:
    """What is printed, by C too, goes there, whoever had caught it before."""
    os.dup2(file, number)
    return os.fdopen(number, "w", encoding="utf-8", closefd=False)


def import_the_slow_ones() -> None:
    """Once, before the first fork; no thread of theirs may run by then.

    Plugins of pytest are not among them: it must import those itself.
    """
    os.environ["OMP_NUM_THREADS"] = "1"
    import beartype  # noqa: F401
    import pytest  # noqa: F401
    import torch

    torch.set_num_threads(1)


def waited_for(child: int, limit: float) -> int:
    """The exit status of a child, which is killed with its own if late."""
    end = time.monotonic() + limit
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return TOO_SLOW


def inside(tree: Path, arguments: tuple[str, ...], keep: bool) -> int:
    """What the child does: the exit status.

    What was there before is no garbage of its own: to look for some in it
    would copy it.
    """
    gc.freeze()
    os.chdir(tree)
    os.environ["PYTHONPATH"] = str(tree / "src")
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    sys.dont_write_bytecode = not keep
    for name in [n for n in sys.modules if n.partition(".")[0] in OURS]:
        del sys.modules[name]
    here = str(Path(__file__).parents[2])
    others = [p for p in sys.path if p and not p.startswith(here + os.sep)]
    venv = [p for p in sys.path if p.startswith(sys.prefix)]
    sys.path[:] = [str(tree), str(tree / "src"), *others, *venv]
    sys.path[:] = [p for p in dict.fromkeys(sys.path) if p != here]
    try:
        return said(arguments)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(bool(end.code))
    except BaseException:
        traceback.print_exc()
        return 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


def said(arguments: tuple[str, ...]) -> int:
    """Run the code or the tests themselves."""
    if arguments[0] == "-c":
        sys.argv[:] = ["-c"]
        exec(
            compile(arguments[1], "<string>", "exec"), {"__name__": "__main__"}
        )
        return 0
    import pytest

    return int(pytest.main(list(arguments[2:])))
