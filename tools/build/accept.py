"""Show what has changed of what no machine computes, and accept it.

    python -m tools.build.accept

A sentence of a conclusion that was edited on its page is copied into its row.
Numbers, formulas, claims, questions and the like, which `tools.accepted`
reads, are shown with the words that went and came, for you to read again; what
the suite tests no longer is shown, too. Then the digests are written, so that
one edit stays one edit; whether it is right is for you and the tests to say.
"""

import difflib
import io
import json
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from tools.accepted import suite
from tools.accepted.facts import Facts, digest
from tools.accepted.record import facts, recorded
from tools.accepted.record import write as write_digests

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "book" / "extensions"))

from record import prose, read_record, said  # noqa: E402

MOST_WORDS = 60  # that are shown of one fact


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


def committed(root: Path) -> dict[str, Facts]:
    """The facts as they were last committed; none where git has no answer."""
    told = subprocess.run(
        ["git", "archive", "HEAD"], cwd=root, capture_output=True
    )
    if told.returncode:
        return {}
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(fileobj=io.BytesIO(told.stdout)) as tree:
            tree.extractall(folder, filter="data")
        return facts(Path(folder))


def accept_facts(root: Path) -> list[str]:
    """Write the digest of each fact; what has changed of them."""
    changes: list[str] = []
    known = facts(root)
    marks = {n: {k: digest(f) for k, f in x.items()} for n, x in known.items()}
    other = [name for name in known if marks[name] != recorded(root, name)]
    was = committed(root) if other else {}
    for name in other:
        before, mine = recorded(root, name), known[name]
        for key in sorted(before.keys() | mine.keys()):
            if before.get(key) == marks[name].get(key):
                continue
            old, new = was.get(name, {}).get(key, ""), mine.get(key, "")
            changes.append(f"{name}: {key}:")
            words = difference(old, new)
            changes += words[:MOST_WORDS]
            if len(words) > MOST_WORDS:
                changes.append(f"  and {len(words) - MOST_WORDS} more words")
        write_digests(root, name, mine)
    return changes


def accept_suite(root: Path) -> list[str]:
    """Write what the suite tests; what it tests no longer.

    Raises:
        SystemExit: if tests are gone and the changelog does not say so.
    """
    if gone := list(suite.let_go(root)):
        raise SystemExit(
            "a test is let go when CHANGELOG.md names it, or its file, but "
            f"these are gone without that: {', '.join(gone)}"
        )
    less = [f"{key}: {how}" for key, how in suite.shrinking(root)]
    suite.write(root, suite.suite(root))
    return less


def main() -> None:
    """Accept what the tree says, and ask for it to be read again."""
    changes = accept(ROOT / "book") + accept_facts(ROOT)
    print("\n".join(changes) or "Nothing that is read by people has changed.")
    if less := accept_suite(ROOT):
        print("The suite tests less:", *less, sep="\n")
    if changes or less:
        print(
            "Read each of these again, beside the cell or the test that it "
            "rests on: from now on they are held to be right."
        )


if __name__ == "__main__":
    main()
