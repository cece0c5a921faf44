"""Guards on the tree: what is in the contents, and one name everywhere."""

from pathlib import Path

from tools.build.notebooks import files_in_contents

WITHOUT_MODULE = {
    "intro": "it shows its lab, and leads to the chapters",
    "scaling": "its code is that of dot_product",
    "efficient/overview": "it compares the mechanisms beside it",
    "bench": "it draws what tools/measure/bench has measured",
}


def orphans(root: Path) -> list[str]:
    """Every page is in the table of contents, and the other way round."""
    listed = set(files_in_contents(root))
    pages = {
        path.relative_to(root).with_suffix("").as_posix()
        for kind in ("*.ipynb", "*.md")
        for path in (root / "book").rglob(kind)
        if not any(part.startswith((".", "_")) for part in path.parts)
    }
    missing = [f"{name}: listed, but no such file" for name in listed - pages]
    unlisted = [f"{name}: in no table of contents" for name in pages - listed]
    return sorted(missing + unlisted)


def three_places(root: Path) -> list[str]:
    """A chapter, its module and its test have one name."""
    found = []
    for name in files_in_contents(root):
        page = root / f"{name}.ipynb"
        stem = page.relative_to(root / "book").with_suffix("")
        if not page.exists() or stem.as_posix() in WITHOUT_MODULE:
            continue
        module = root / "src/selfattn" / stem
        if not module.with_suffix(".py").exists() and not module.is_dir():
            found.append(f"{stem}: a chapter without a module")
        if not has_test(root, stem.name):
            found.append(f"{stem}: a chapter without a test")
    return found


def has_test(root: Path, stem: str) -> bool:
    """Whether a test file, or a folder of them, has the name."""
    tests = root / "tests"
    return (tests / stem).is_dir() or any(tests.rglob(f"test_{stem}.py"))
