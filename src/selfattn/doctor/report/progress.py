"""Where it is, on a terminal, when it takes longer than two seconds."""

import shutil
import sys
import time
from types import TracebackType
from typing import Any, Self

AFTER, EVERY = 2.0, 0.5  # seconds: until the first line, and between two
BACK, CLEAR = "\r", "\x1b[K"


class Progress:
    """One line on standard error that is written over, and gone at the end.

    Where that is no terminal, nothing is written: a log has no use for it.
    """

    def __init__(self, stream: Any = None):
        """Begin to count; ``stream`` is standard error when None."""
        self.stream = sys.stderr if stream is None else stream
        self.began = self.told = time.monotonic()
        self.shown = False

    @property
    def on(self) -> bool:
        """Whether somebody may be looking."""
        try:
            return bool(self.stream.isatty())
        except (AttributeError, ValueError):  # there is none, or it is closed
            return False

    def tell(self, at: str) -> None:
        """Say where it is, if it is time for that."""
        now = time.monotonic()
        recently = self.shown and now - self.told < EVERY
        if not self.on or now - self.began < AFTER or recently:
            return
        line = f"… {now - self.began:.0f} s {at.strip()}"
        wide = shutil.get_terminal_size().columns - 1
        self.stream.write(f"{BACK}{line[:wide]}{CLEAR}")
        self.stream.flush()
        self.told, self.shown = now, True

    def __enter__(self) -> Self:
        """Begin."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Wipe the line out, if there is one."""
        if self.shown:
            self.stream.write(f"{BACK}{CLEAR}")
            self.stream.flush()
