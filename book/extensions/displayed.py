"""A displayed formula is made of parts that can stand below each other.

KaTeX lets no line end within a formula that has its own line; on a phone half
of one was out of sight. Here it is taken apart where a mathematician would go
on in a new line: where a wide space parts one equation from the next, and
before an equals sign or another relation outside of brackets. custom.css lets
lines end there, on narrow screens alone; what is too wide even so is made a
little smaller, or scrolls (``tab-stops.js``).
"""

import re
from collections.abc import Iterator

from formulas import BAR, BASE, base_end, opened
from sphinx.application import Sphinx

SHOWN = re.compile(
    '<span class="katex-display"><span class="katex">'
    '<span class="katex-mathml">.*?<span class="katex-html"'
    ' aria-hidden="true">',
    re.DOTALL,
)
SPACE = re.compile(r'<span class="mspace" style="margin-right:([\d.]+)em;">')
RELATION = '<span class="mrel'
STRUT = '<span class="strut"'
WIDE = 1.0  # em: a space that parts two equations
PART = '<span class="formula-part">{}</span>'
# A space that vanishes at the end of a line; its own width is a quarter.
GAP = '<span class="formula-gap" style="word-spacing:{:.4g}em"> </span>'

Atom = tuple[str, str]  # the strut of its line, and what is seen


def atoms(bases: str) -> Iterator[Atom]:
    """What stands side by side in the bases of a formula."""
    place = 0
    while bases.startswith(BASE, place):
        end = base_end(bases, place)
        inner = bases[place + len(BASE) : end - len("</span>")]
        at = base_end(inner, 0)
        strut = inner[:at]
        while at < len(inner):
            upto = base_end(inner, at)
            yield strut, inner[at:upto]
            at = upto
        place = end


def space(html: str) -> float:
    """How wide a space is; 0: it is none."""
    found = SPACE.match(html)
    return float(found[1]) if found else 0.0


def taken_apart(bases: str) -> str:
    """The same formula, in parts of pieces that stay on one line each."""
    parts: list[list[list[Atom]]] = [[[]]]
    gaps: list[float] = []
    depth = bars = 0
    for atom in atoms(bases):
        html = atom[1]
        outside = depth <= 0 and bars % 2 == 0
        depth += opened(html)
        bars += html.count(BAR)
        begun = parts[-1] != [[]]
        if outside and space(html) and (space(html) >= WIDE or not begun):
            if begun:
                parts.append([[]])
                gaps.append(0.0)
            if gaps:
                gaps[-1] += space(html)
                continue
        solid = [old for old in parts[-1][-1] if not space(old[1])]
        relates = html.startswith(RELATION) and outside and solid
        if relates and not solid[-1][1].startswith(RELATION):
            parts[-1].append([])
        parts[-1][-1].append(atom)
    if parts[-1] == [[]]:  # a space at the end
        parts.pop()
    return joined(parts, gaps)


def joined(parts: list[list[list[Atom]]], gaps: list[float]) -> str:
    """The parts as KaTeX would write them, and the gaps between them."""
    html = ""
    for i, part in enumerate(parts):
        html += GAP.format(gaps[i - 1] - 0.25) if i else ""
        html += PART.format("".join(map(piece, part)))
    return html


def piece(held: list[Atom]) -> str:
    """A base, as high as those from which it comes."""
    struts = dict.fromkeys(strut for strut, _ in held)
    return f"{BASE}{''.join(struts)}{''.join(html for _, html in held)}</span>"


def with_parts(html: str) -> Iterator[str]:
    """Take all displayed formulas of a page apart."""
    end = 0
    for formula in SHOWN.finditer(html):
        start = formula.end()
        yield html[end:start]
        end = start
        while html.startswith(BASE, end):
            end = base_end(html, end)
        yield taken_apart(html[start:end]) if end > start else ""
    yield html[end:]


def take_apart(
    app: Sphinx, page: str, template: str, context: dict, doctree: object
) -> None:
    """Go through one page."""
    if "body" in context:
        context["body"] = "".join(with_parts(context["body"]))


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the hook."""
    app.connect("html-page-context", take_apart)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
