"""The pins: exact, complete, and such as the package accepts."""

import importlib.metadata
import re
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tools.setup.packages import PULLED_IN

ROOT = Path(__file__).resolve().parents[2]
TORCH = "torch"


def pins(name: str) -> dict[str, Requirement]:
    """The requirements of one file by name, those of its includes not."""
    lines = (ROOT / name).read_text("utf-8").splitlines()
    bare = [line.split("#")[0].strip() for line in lines]
    wanted = [Requirement(line) for line in bare if line and line[0] != "-"]
    names = [canonicalize_name(one.name) for one in wanted]
    assert len(set(names)) == len(names)
    return dict(zip(names, wanted, strict=True))


BOOK = pins("requirements-book.txt")
REST = pins("requirements.txt")


def pulled_in(names: set[str]) -> set[str]:
    """All that these packages need here, themselves included."""
    found: set[str] = set()
    todo = [(name, "") for name in names]
    while todo:
        name, extra = todo.pop()
        if (name, extra) in found:
            continue
        found.add((name, extra))
        for line in importlib.metadata.requires(name) or []:
            need = Requirement(line)
            marker = need.marker
            if marker is None or marker.evaluate({"extra": extra}):
                other = canonicalize_name(need.name)
                todo += [(other, e) for e in {"", *need.extras}]
    return {name for name, _ in found}


def test_every_requirement_is_pinned_exactly_and_once():
    assert not BOOK.keys() & REST.keys()
    for requirement in (BOOK | REST).values():
        assert re.fullmatch(r"==[\w.]+", str(requirement.specifier))


def test_what_was_asked_for_is_there_by_name():
    first = (ROOT / "requirements.txt").read_text("utf-8")
    assert "-r requirements-book.txt" in first.split(PULLED_IN)[0]
    assert str(BOOK["jupyter-book"]) == "jupyter-book==1.0.4.post1"
    assert str(REST[TORCH]) == "torch==2.13.0"
    assert REST.keys() >= {"matplotlib", "ipywidgets", "nbval", "pytest"}


def here(wanted: dict[str, Requirement]) -> set[str]:
    """The names that this system is to install."""
    return {
        name
        for name, one in wanted.items()
        if one.marker is None or one.marker.evaluate()
    }


def test_the_site_needs_no_torch_and_its_pins_are_complete():
    assert pulled_in(here(BOOK)) == here(BOOK)
    assert not BOOK.keys() & {TORCH, "selfattn", "numpy"}


def test_the_pins_of_the_verification_are_complete():
    # On Linux the usual build of torch brings CUDA packages of its own.
    own = re.compile("nvidia-|cuda-|triton")
    needed = {n for n in pulled_in(here(REST)) if not own.match(n)}
    assert needed <= BOOK.keys() | REST.keys()
    assert here(REST) <= needed


def test_the_package_accepts_what_is_pinned():
    needs = [Requirement(r) for r in importlib.metadata.requires("selfattn")]
    plain = {r.name: r.specifier for r in needs if r.marker is None}
    assert set(plain) == {TORCH, "jaxtyping"}
    for name, allowed in plain.items():
        (pin,) = REST[name].specifier
        assert allowed.contains(pin.version)
