"""Output that reaches any terminal and any file, whatever it can encode."""

import codecs
import contextlib
import json
import os
import sys
import unicodedata
from collections.abc import Iterator

PLAIN = {
    "✓": "[healthy]",
    "✗": "[ill]",
    "○": "[?]",
    "“": '"',
    "”": '"',
    "‘": "'",
    "’": "'",
    "…": "...",
    "–": "-",
    "—": "-",
    "−": "-",
    "·": "*",
    "×": "x",
    "→": "->",
    "√": "sqrt ",
    "ᵀ": "^T",
    "≤": "<=",
    "≥": ">=",
    "≠": "!=",
}


def in_plain_words(error: UnicodeError) -> tuple[str, int]:
    """What to write in place of characters that cannot be encoded."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    words = "".join(
        plain(one) for one in error.object[error.start : error.end]
    )
    return words, error.end


def plain(character: str) -> str:
    """A character in ASCII.

    >>> plain("√"), plain("é"), plain("中")
    ('sqrt ', 'e', '?')
    """
    known = PLAIN.get(character)
    if known is not None:
        return known
    simple = unicodedata.normalize("NFKD", character)
    return simple.encode("ascii", "ignore").decode() or "?"


codecs.register_error("selfattn.plain", in_plain_words)


@contextlib.contextmanager
def any_encoding() -> Iterator[None]:
    """Let standard output and error write what they cannot encode plainly.

    What is left unread by whoever has gone away is nobody's error. What
    cannot be written for another reason is said once.
    """
    changed = []
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            changed.append((stream, stream.errors))
            stream.reconfigure(errors="selfattn.plain")
    try:
        yield
    except BrokenPipeError:
        pass  # whoever read it has read enough
    except OSError as error:
        with contextlib.suppress(OSError):
            print(f"Not all could be written: {error}", file=sys.stderr)
    finally:
        for stream, errors in changed:
            try:
                stream.flush()
            except OSError:  # nor shall Python try again at its end
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
            stream.reconfigure(errors=errors)


def print_json(text: str) -> None:
    """JSON that is as readable as the encoding of the output allows."""
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except UnicodeEncodeError:
        text = json.dumps(json.loads(text), indent=2)
    print(text)
