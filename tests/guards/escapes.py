"""Guards on the ways out: a test or an example that runs no more, or lies."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

# Where a mark or a hook is meant, and how often it stands there.
MEANT = {
    ("tests/conclusions/conftest.py", "xfail"): 1,  # strict, by its row
    ("tests/conclusions/conftest.py", "pytest_generate_tests"): 1,
    ("tests/conftest.py", "pytest_collection_finish"): 1,  # no garbage
}
# Where warnings are silenced on purpose, each for one library's message.
SILENCED = {
    "tests/chain/test_escapes.py": 1,  # plants one
    "tests/chain/test_notebooks.py": 1,  # plants one
    "tests/claims/test_cost.py": 2,
    "tests/doctor/engine/test_outcome.py": 1,  # makes them errors
    "tests/hostile/campaign.py": 1,
    "tests/hostile/test_strange_exports.py": 1,  # of what PyTorch gives up
    "tests/hostile/test_strange_gradients.py": 2,  # one of what vmap lacks
    "tests/hostile/test_strange_graphs.py": 1,  # of what PyTorch gives up
    "tests/hostile/test_strange_uses.py": 2,
    "tests/hostile/test_strangers.py": 1,
    "tests/labs/test_masks.py": 1,
    "tests/test_contract.py": 2,
    "tests/test_cost.py": 1,  # of what PyTorch tries out
    "tests/test_products.py": 1,  # of what PyTorch tries out
    "tests/tools/measure/test_gpu.py": 1,
}
WAYS_OUT = {
    "skip",
    "skipif",
    "skipIf",
    "skipTest",
    "SkipTest",
    "importorskip",
    "xfail",
    "expectedFailure",
    "collect_ignore",
    "collect_ignore_glob",
    "__test__",
    "deselected",
    "pytestmark",
    "pytest_plugins",
}
HOOK = re.compile(r"pytest_(?!addoption$)\w+")
SILENCE = re.compile(r"(?:simplefilter|filterwarnings)\(")
OPTIONS = re.compile(r"doctest:\s*\+?(?!ELLIPSIS|NORMALIZE)\w+|[+]SKIP")


def ways_out(root: Path) -> list[str]:
    """No test is skipped, expected to fail, ignored or deselected."""
    found: list[str] = []
    for path in sorted((root / "tests").rglob("*.py")):
        name = path.relative_to(root).as_posix()
        found += of_tests(name, path.read_text("utf-8"))
    texts = [*(root / "src").rglob("*.py"), *(root / "book").rglob("*.md")]
    for path in [*texts, root / "README.md"]:
        found += [
            f"{path.relative_to(root)}: an example that is not run: {option}"
            for option in OPTIONS.findall(path.read_text("utf-8"))
        ]
    return found


def of_tests(name: str, text: str) -> Iterator[str]:
    """The ways out in one file of the suite."""
    used: dict[str, int] = {}
    for node in ast.walk(ast.parse(text)):
        for word in words(node):
            if word in WAYS_OUT or HOOK.fullmatch(word):
                used[word] = used.get(word, 0) + 1
        match node:
            case ast.Assert(test=ast.Constant()):
                yield f"{name}:{node.lineno}: an assert of a constant"
    for word, times in used.items():
        if times > MEANT.get((name, word), 0):
            yield f"{name}: a way out, {word}"
    silenced = len(SILENCE.findall(text))
    if silenced > SILENCED.get(name, 0):
        yield f"{name}: {silenced} filters of warnings"
    for option in OPTIONS.findall(text):
        yield f"{name}: an example that is not run: {option}"


def words(node: ast.AST) -> Iterator[str]:
    """The names that a node of the tree reads, writes or defines."""
    if isinstance(node, ast.Name):
        yield node.id
    elif isinstance(node, ast.Attribute):
        yield node.attr
    elif isinstance(node, ast.FunctionDef | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.ImportFrom):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.keyword) and node.arg:
        yield node.arg


def test_functions(text: str) -> list[str]:
    """The names of the test functions of a module."""
    return [
        node.name
        for node in ast.parse(text).body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    ]


def idle_claims(tests: Path) -> list[str]:
    """Every test that settles a claim asserts, or expects an error."""
    found = []
    for path in sorted(tests.rglob("test_*.py")):
        tree = ast.parse(path.read_text("utf-8"))
        asserting = {
            node.name
            for node in tree.body
            if isinstance(node, ast.FunctionDef) and asserts(node, set())
        }
        found += [
            f"{path.name}: {node.name} asserts nothing"
            for node in tree.body
            if isinstance(node, ast.FunctionDef)
            and node.name.startswith("test_")
            and not asserts(node, asserting)
        ]
    return found


def asserts(function: ast.FunctionDef, helpers: set[str]) -> bool:
    """Whether a function asserts something that could be otherwise."""
    for node in ast.walk(function):
        if isinstance(node, ast.Assert):
            if not isinstance(node.test, ast.Constant):
                return True
        elif isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if name.startswith("assert") or name in {"raises", *helpers}:
                return True
    return False
