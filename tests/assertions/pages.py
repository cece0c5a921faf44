"""Memory in large pages: what makes a fork of a large process cheap.

The doctor examines in a fork of the process, and for each the system copies
the list of all pages that there are: of a process that has collected all
tests, some hundred thousand of 4 KiB, twice at every examination. In pages of
2 MiB there are a few hundred. Linux alone can be asked, and it may refuse.
"""

import ctypes
import sys
from pathlib import Path

MAPS = Path("/proc/self/maps")
LARGE = 2 << 20  # bytes
COLLAPSE = 25  # of madvise(2), since Linux 6.1


def in_large_pages():
    """Ask for them, for all memory that is no file's; how many there are."""
    if sys.platform != "linux":
        return 0
    madvise = ctypes.CDLL(None).madvise
    madvise.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
    return sum(
        madvise(start, LARGE, COLLAPSE) == 0
        for first, last in writable()
        for start in range(-(-first // LARGE) * LARGE, last - LARGE + 1, LARGE)
    )


def writable():
    """Where the memory begins and ends that is ours alone, and no file's."""
    lines = MAPS.read_text().splitlines() if MAPS.exists() else []
    for line in lines:
        place, access, _, _, node, *name = line.split(maxsplit=5)
        if access == "rw-p" and node == "0" and name in ([], ["[heap]"]):
            first, last = place.split("-")
            yield int(first, 16), int(last, 16)
