"""Show where a page and the record of conclusions differ, and write it down.

    python -m tools.build.accept

A sentence that was edited on its page is copied into its row, so that one
edit stays one edit; whether it still holds is for the tests to say.
"""

import difflib
import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "book" / "extensions"))

from record import prose, read_record, said  # noqa: E402


def accept(book: Path) -> list[str]:
    """Write each sentence that its page has in other words; what changed."""
    changes = []
    for row in read_record(book / "conclusions"):
        path = book / "conclusions" / f"{row.chapter}.toml"
        page = prose(book / f"{row.chapter}.ipynb")
        on_page = {name: words for words, name in said(page)}.get(row.id)
        if on_page in (None, row.says):
            continue
        changes += [f"{row.id}:", *difference(row.says, on_page)]
        path.write_text(with_sentence(path, row.id, on_page), "utf-8")
    return changes


def with_sentence(path: Path, name: str, words: str) -> str:
    """The text of a record in which one row says these words."""
    mark = f'id = "{name}"\n'
    head, tail = path.read_text("utf-8").split(mark, 1)
    line = f"says = {json.dumps(words, ensure_ascii=False)}"
    old = next(x for x in tail.splitlines() if x.startswith("says = "))
    return head + mark + tail.replace(old, line, 1)


def difference(old: str, new: str) -> list[str]:
    """The words that went, and those that came."""
    lines = difflib.ndiff(old.split(), new.split())
    return [f"  {line}" for line in lines if line[0] in "-+"]


def main() -> None:
    """Accept what the pages say."""
    changes = accept(ROOT / "book")
    print("\n".join(changes) or "The pages and the record say the same.")


if __name__ == "__main__":
    main()
