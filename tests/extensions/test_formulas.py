"""Formulas break between brackets and not within them."""

from formulas import BAR, BASE, LINE, with_brackets_whole

HEAD = (
    '<span class="math"><span class="katex"><span class="katex-mathml">'
    '<math></math></span><span class="katex-html" aria-hidden="true">'
)
FEET = "</span></span></span>"


def base(*signs):
    """What stays on one line, of these signs."""
    kinds = {"(": "mopen", ")": "mclose", "|": "mord"}
    spans = (
        BAR
        if sign == "|"
        else f'<span class="{kinds.get(sign, "mord")}">{sign}</span>'
        for sign in signs
    )
    return f"{BASE}{''.join(spans)}</span>"


def held(*bases):
    """These parts, held together."""
    return f'<span class="within-brackets">{"".join(bases)}</span>'


def seen(*bases):
    """The formula of these parts, and what comes out of it."""
    html = "before " + HEAD + "".join(bases) + FEET + ", behind"
    assert LINE.search(html)
    return "".join(with_brackets_whole(html))


def test_the_parts_of_a_bracket_are_held_together():
    parts = base("4", "(", "w", "+"), base("b", ")", "+"), base("c")
    assert seen(*parts) == (
        "before " + HEAD + held(*parts[:2]) + parts[2] + FEET + ", behind"
    )


def test_the_parts_between_bars_are_held_together():
    parts = base("|", "q", "+"), base("k", "|", "+"), base("c")
    assert held(*parts[:2]) + parts[2] in seen(*parts)


def test_a_formula_without_brackets_stays_as_it_is():
    parts = base("a", "+"), base("(", "b", ")", "+"), base("c")
    assert "".join(parts) in seen(*parts)


def test_a_bracket_that_is_never_closed_holds_nothing():
    parts = base("(", "a", "+"), base("b")
    assert "".join(parts) in seen(*parts)


def test_a_formula_goes_on_behind_two_brackets_that_close_at_once():
    """KaTeX writes them as one: what followed was held together, too."""
    twice = base("(", "(") + base("a").replace('"mord">a', '"mclose">))')
    assert held(twice) + base("c") in seen(twice, base("c"))
