"""The suite: a file, a test, an assert, a case gone; a bound, an escape."""

import ast
import random
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from tools.measure.corruptions import texts
from tools.measure.corruptions.corruption import Corruption, kind
from tools.measure.corruptions.texts import Piece

TESTS = "tests/**/test_*.py"
TOLERANCE = re.compile(r"(?<![\w.])\d+(?:\.\d+)?e-\d+|(?<![\w.])\.0\d+")
ESCAPES = {
    "skip": "@pytest.mark.skip\n",
    "skipif": '@pytest.mark.skipif(True, reason="slow")\n',
    "xfail": "@pytest.mark.xfail(strict=False)\n",
}
Test = ast.FunctionDef


def tests(piece: Piece) -> list[Test]:
    """The test functions of a file."""
    return [
        node
        for node in ast.parse(piece.text).body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    ]


def start(test: Test) -> int:
    """The first line of a test, with its marks; counted from 0."""
    lines = [test.lineno, *(mark.lineno for mark in test.decorator_list)]
    return min(lines) - 1


def without(piece: Piece, first: int, last: int, instead: str = "") -> str:
    """A file without some of its lines."""
    lines = piece.text.splitlines(keepends=True)
    return "".join([*lines[:first], instead, *lines[last:]])


def made(
    name: str, rule: str, piece: Piece, test: str, text: str | None
) -> Corruption:
    """A corruption of one file of the suite."""
    place = f"{piece.path}::{test}"
    return Corruption(name, rule, place, test, rule, {piece.path: text})


@kind("suite")
def suite(root: Path, rng: random.Random) -> Iterator[Corruption]:
    """Files and tests that are gone, emptied or left out."""
    for piece in texts.files(root, TESTS):
        found = tests(piece)
        yield made("suite", "file gone", piece, "", None)
        escape = 'torch = pytest.importorskip("nothing")\n'
        first = len(piece.text.splitlines())
        text = without(piece, first, first, f"\nimport pytest\n\n{escape}")
        yield made("suite", "importorskip", piece, "", text)
        for test in rng.sample(found, min(3, len(found))):
            first, last = start(test), test.end_lineno or 0
            gone = without(piece, first, last)
            yield made("suite", "test gone", piece, test.name, gone)
            body = test.body[0].lineno - 1
            empty = without(piece, body, last, "    assert True\n")
            yield made("suite", "test emptied", piece, test.name, empty)
            for rule, mark in ESCAPES.items():
                if re.search(r"^import pytest$", piece.text, re.M):
                    text = without(piece, first, first, mark)
                    yield made("suite", rule, piece, test.name, text)
            yield from of_cases(piece, test)
    for piece in texts.files(root, "src/selfattn/**/*.py", "README.md"):
        for match in re.finditer(r">>> [^\n#]+$", piece.text, re.M):
            text = texts.replaced(
                piece.text, match, match.group() + "  # doctest: +SKIP"
            )
            line = piece.text.count("\n", 0, match.start())
            yield made("suite", "doctest skipped", piece, f"line {line}", text)
            break


def of_cases(piece: Piece, test: Test) -> Iterator[Corruption]:
    """A test that lost one of its cases."""
    for mark in test.decorator_list:
        values = mark.args[1] if getattr(mark, "args", [])[1:] else None
        if isinstance(values, ast.List) and len(values.elts) > 1:
            last, before = values.elts[-1], values.elts[-2]
            lines = piece.text.encode().splitlines(keepends=True)
            place = [0]
            for line in lines:
                place.append(place[-1] + len(line))
            a = place[(before.end_lineno or 1) - 1] + before.end_col_offset
            b = place[(last.end_lineno or 1) - 1] + last.end_col_offset
            text = (piece.text.encode()[:a] + piece.text.encode()[b:]).decode()
            yield made("suite", "case gone", piece, test.name, text)


@kind("asserts and bounds")
def asserts(root: Path, rng: random.Random) -> Iterator[Corruption]:
    """One assert less in a test that has others; a bound times 1000."""
    name = "asserts and bounds"
    for piece in texts.files(root, TESTS):
        for test in tests(piece):
            held = [n for n in ast.walk(test) if isinstance(n, ast.Assert)]
            for node in held[:1]:
                first, last = node.lineno - 1, node.end_lineno or 0
                gap = " " * node.col_offset + "pass\n"
                text = without(piece, first, last, gap)
                yield made(name, "assert gone", piece, test.name, text)
                yield from weaker(piece, test, node)
            for match in islice(bounds(piece, test), 1):
                loose = f"{float(match.group()) * 1000:g}"
                text = texts.replaced(piece.text, match, loose)
                yield made(name, "bound × 1000", piece, test.name, text)


def bounds(piece: Piece, test: Test) -> Iterator[re.Match[str]]:
    """The bounds in a test: its small numbers, but not those that it tells."""
    lines = piece.text.splitlines(keepends=True)
    for node in ast.walk(test):
        if isinstance(node, ast.Constant) and isinstance(node.value, float):
            before = lines[node.lineno - 1].encode()[: node.col_offset]
            start = sum(map(len, lines[: node.lineno - 1]))
            place = start + len(before.decode())
            if match := TOLERANCE.match(piece.text, place):
                yield match


def weaker(piece: Piece, test: Test, node: ast.Assert) -> Iterator[Corruption]:
    """An assert that compares for equality, and now for an order."""
    lines = piece.text.splitlines(keepends=True)
    line = lines[node.lineno - 1]
    if line.count(" == ") == 1 and node.lineno == node.end_lineno:
        weak = line.replace(" == ", " is not ")
        text = without(piece, node.lineno - 1, node.lineno, weak)
        yield made("asserts and bounds", "weaker", piece, test.name, text)
