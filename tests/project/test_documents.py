"""README and licences: links that lead somewhere, names that agree."""

import importlib.metadata
import re
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]


def test_the_readme_is_short_and_its_links_lead_somewhere():
    text = (ROOT / "README.md").read_text("utf-8")
    assert len(text.splitlines()) < 80
    targets = re.findall(r"\]\(([^)]+)\)", text)
    here = [target for target in targets if "://" not in target]
    assert [t for t in here if not (ROOT / t).exists()] == []


def test_the_readme_maps_every_page_of_the_contents():
    text = (ROOT / "README.md").read_text("utf-8")
    contents = (ROOT / "_toc.yml").read_text("utf-8")
    pages = re.findall(r"file: (book/\S+)", contents)
    generated = {"book/bibliography"}
    assert [p for p in pages if p not in text] == sorted(generated & {*pages})


def test_the_licences_are_named_alike_everywhere():
    cite = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    package = importlib.metadata.metadata("selfattn")
    assert cite["license"] == package["License-Expression"] == "BSD-3-Clause"
    assert cite["version"] == package["Version"]
    assert cite["cff-version"] == "1.2.0"
    assert all(cite[key] for key in ("title", "message", "authors"))
    code = (ROOT / "LICENSE").read_text("utf-8")
    assert code.startswith("BSD 3-Clause License")
    text = (ROOT / "LICENSE-TEXT").read_text("utf-8")
    assert "SPDX-License-Identifier: CC-BY-4.0" in text
    assert "Section 8 – Interpretation." in text  # the whole of it
