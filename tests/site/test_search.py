"""Search as a newcomer types: the first hit is where it is explained."""

import pytest

RESULTS = "#search-results li"
SHARED = "multihead.html#heads-that-share-keys-and-the-memory-of-a-cache"
PRINT = "intro.html#print-a-chapter"
EXPLAINED = {
    "softmax": "dot_product.html#by-hand",
    "RoPE": "positions.html#turn-instead-of-add-rope",
    "NaN": "doctor.html#where-the-nan-begins",
    "GQA": SHARED,
    "kv cache": SHARED,
    "-inf": "masks.html#",
    "residual path": "layers.html#add-a-path-past-the-layer",
    "ALiBi": "positions.html#",
    "flash attention": "efficient/flash.html#",
    # Asked in words, most of which say nothing of what is asked.
    "what is GQA": SHARED,
    "kv cache memory": SHARED,
    "what is a causal mask": "masks.html#",
    "how does flash attention work": "efficient/flash.html#",
    "how to use several GPUs": "devices.html#",
    "install doctor": "intro.html#the-doctor",
    "get the doctor": "intro.html#the-doctor",
    "locality sensitive hashing": "efficient/reformer.html#",
    "multi-head attention": "multihead.html#multi-head-attention",
    "all-to-all": "devices.html#",
    "debug my attention code": "doctor.html#",
    "pdf": PRINT,
    "print": PRINT,
    "print a chapter": PRINT,
    "how to print": PRINT,
    "printing": PRINT,
    "print the whole book": PRINT,
    "chapter 3": "scaling.html#",
    "second head": "multihead.html#",
    # As the field says it, where a chapter's title says it otherwise.
    "positional encoding": "positions.html#telling-attention",
    "position embeddings": "positions.html#telling-attention",
    "online softmax": "efficient/flash.html#",
    "encodings": "positions.html#",
    "query key value": "dot_product.html#queries-keys-and-values",
    "scaled dot product attention": "dot_product.html#queries-keys",
    "flex attention": "masks.html#two-meanings-of-true",
    "top-p": "models.html#what-to-take",
    "GPT": "models.html#the-same-blocks",
    "why divide by sqrt d": "scaling.html#",
    "why divide by sqrt d_k": "scaling.html#why-divide",
    "loss is nan": "doctor.html#where-the-nan-begins",
    "causal mask": "masks.html#a-mask-is-a-comparison",
    "layer norm": "layers.html#norm-a-token-of-size-one",
    "LayerNorm": "layers.html#norm-a-token-of-size-one",
    "temperature": "scaling.html#temperature",
    "LSH": "efficient/reformer.html#the-equation",
}


@pytest.mark.parametrize("how", ["served", "from disk"])
def test_the_first_hit_is_where_it_is_explained(site, site_url, page, how):
    home = site_url if how == "served" else f"{site.as_uri()}/"
    wrong = []
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("console", lambda it: it.type == "error" and wrong.append(it.text))
    first = {}
    for query in EXPLAINED:
        page.goto(f"{home}search.html?q={query}")
        hit = page.locator(f"{RESULTS} a").first
        first[query] = hit.get_attribute("href").removeprefix("book/")
    assert {
        query: hit
        for query, hit in first.items()
        if not hit.startswith(EXPLAINED[query])
    } == {}
    assert wrong == []


def test_every_hit_leads_to_its_section_and_quotes_it(site, site_url, page):
    page.goto(f"{site_url}search.html?q=softmax")
    hits = page.locator(f"{RESULTS} a")
    assert hits.count() > 10
    for href in hits.evaluate_all("(all) => all.map((a) => a.href)"):
        path, _, anchor = href.removeprefix(site_url).partition("#")
        assert f'id="{anchor}"' in (site / path).read_text("utf-8")
    quotes = page.locator(f"{RESULTS} p.context mark").all_text_contents()
    assert {"softmax"} <= {quote.strip(".,:;").lower() for quote in quotes}


SAID = {
    "softmax": "Softmax. Exponentials make every score positive",
    "causal mask": "A causal mask says j≤i",
    "loss is nan": "If a loss is NaN, look which is True in your attention",
    "-inf": "e^−∞=0, a forbidden key adds nothing",
    "temperature": "√dk is a temperature",
}


@pytest.mark.parametrize("query", SAID)
def test_a_quote_says_it_with_its_signs(site_url, page, query):
    """A root was no root, a power a factor; words stood before a sentence."""
    page.goto(f"{site_url}search.html?q={query}")
    told = page.locator(f"{RESULTS} p.context").first.inner_text()
    assert SAID[query] in told


GLOSSARY = ["key-value-cache", "softmax", "nan", "rope", "top-p"]


@pytest.mark.parametrize("term", [*GLOSSARY, "grouped-query-attention"])
def test_the_glossary_and_the_first_hit_lead_to_one_chapter(
    site_url, page, term
):
    """Of the cache the one said masks, the other several heads."""
    page.goto(f"{site_url}book/glossary.html")
    entry = page.locator(f"dl.glossary dt[id='{term}']")
    led = entry.locator("xpath=following-sibling::dd[1]//a").last
    chapter = led.get_attribute("href").partition("#")[0]
    query = term.replace("key-value", "kv").replace("-", " ")
    page.goto(f"{site_url}search.html?q={query}")
    first = page.locator(f"{RESULTS} a").first.get_attribute("href")
    assert first.partition("#")[0] == f"book/{chapter}"


def test_no_solution_is_found_before_one_has_looked(site_url, page):
    page.goto(f"{site_url}search.html?q=solution")
    page.locator(RESULTS).first.wait_for()
    titles = page.locator(f"{RESULTS} a").all_text_contents()
    assert "Solution" not in titles


def test_what_was_searched_for_marks_nothing_elsewhere(site_url, page):
    """The words of one search do not reappear on an unrelated page."""
    page.goto(f"{site_url}search.html?q=softmax")
    page.locator(f"{RESULTS} a").first.wait_for()
    page.goto(f"{site_url}book/notation.html")
    page.wait_for_timeout(500)
    assert page.locator(".highlighted").count() == 0


def test_nothing_found_is_said(site_url, page):
    page.goto(f"{site_url}search.html?q=xyzzy")
    assert (
        page.locator("[role=status]").inner_text() == "Nothing says “xyzzy”."
    )


def test_what_is_nowhere_as_a_whole_is_said(site_url, page):
    """Sections with `label` alone stood there as if they told of both."""
    page.goto(f"{site_url}search.html?q=label+smoothing")
    status = page.locator("[role=status]").inner_text()
    assert status.startswith("Nothing says all of “label smoothing”; some")


def test_words_that_are_markup_stay_words(site_url, page):
    page.goto(f"{site_url}search.html?q=%3Cb%3Exyzzy%3C/b%3E")
    assert page.locator("#search-results b").count() == 0


def test_the_texts_are_fetched_for_those_who_ask(site_url, page):
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{site_url}search.html", wait_until="networkidle")
    assert not any("search-sections" in url for url in asked)
    page.goto(f"{site_url}search.html?q=softmax")
    assert any("search-sections" in url for url in asked)


def test_texts_that_do_not_come_are_not_called_nothing(site_url, page):
    page.route("**/search-sections.js", lambda route: route.abort())
    page.goto(f"{site_url}search.html?q=softmax")
    said = page.locator("[role=status]").inner_text()
    assert said == "The book’s text could not be fetched."
