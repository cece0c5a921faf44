// Finds sections by their words: first where a thing is explained, then where
// it is mentioned. All texts are in one script, so that it works from disk; it
// is fetched once somebody asks.
(() => {
  const SHOWN = 40; // sections
  const QUOTED = 220; // characters
  // Words that are one: as people type them, and as the book writes them.
  const SAME = [
    [/[-−]\s?(?:inf(?:inity)?\b|∞)/g, " minus infinity "],
    [/√|\bsqrt\b/g, " root "],
    [/\bgqa\b/g, " gqa grouped "],
    [/\b(flash|flex)attention\b/g, " $1 attention "],
    [/\blayer ?norm\b/g, " layer normalisation norm "],
    [/dₖ/g, "d_k"],
    [/^(?:get|download)\b/g, " install "],
    [/\bposition(?:al)? (?:en|em)[cb]\w+/g, " telling things position "],
    [/\bonline softmax\b/g, " flash attention softmax "],
    [/\bscaled dot.product(?: attention)?\b/g, " query key value "],
  ];
  // Where a thing is asked, repeated or argued about is not where it is told.
  const ASIDE = new RegExp("^(predict|fix|build|summary|exercises|try it"
    + "|what it costs|where it fails|a famous bug|on paper|further reading|other names)\\b",
    "i");
  const LAST = new RegExp("/(claims|claim-tests|conclusion-tests|bibliography|bench|notation"
    + "|whereabouts|intro|api|changelog)\\.html|-second-reading$");

  // What a question is made of, and says nothing of what it asks about.
  const ASKING = new Set(("a an and are as at be by can do does for from get "
    + "how i in into is it me mine my of on or so than that the there this to "
    + "up use used using vs what when where which who why will with you your"
    ).split(" "));

  // A plural is found by its singular, "queries" by "query", "masked" by
  // "mask", "debugging" by "debug".
  const singular = (word) => word.length > 3
    ? word.replace(/ies$/, "ys").replace(/(?<=[^s])s$/, "") : word;
  const stem = (word) => word.length > 4
    ? singular(word.replace(/([bgmnprt])\1(?=ing$)/, "$1"))
      .replace(/(?<=[^e])ed$|ing$/, "") : singular(word);

  function wordsOf(text) {
    const plain = SAME.reduce((changed, [from, to]) =>
      changed.replace(from, to), text.toLowerCase());
    return (plain.match(/[\p{L}\p{N}]+/gu) ?? []).map(stem);
  }

  let sections = []; // of the whole book, once they are here

  const counted = (section, place) => {
    const words = wordsOf(section.text);
    const count = new Map();
    for (const word of words) count.set(word, (count.get(word) ?? 0) + 1);
    const [, number, name] = /^(\d+)?(?:\. )?(.*)/.exec(section.title);
    const title = wordsOf(name);
    const [first, second] = title;
    const called = number ? ["chapter", number] : [];
    const file = /([^/]*)\.html/.exec(section.address)[1].replace("_", " ");
    return { ...section, place, count, length: words.length,
      fileWords: new Set(section.title === section.chapter
        ? wordsOf(file) : []),
      titleWords: new Set([...called, ...title]),
      // "The softmax, and how it breaks"; "Turn instead of add: RoPE".
      subjects: new Set([/^(the|a|an)$/.test(first) ? second : first,
        ...wordsOf(name.split(": ")[1] ?? "")]),
      chapterWords: new Set(wordsOf(section.chapter)),
      strongWords: new Set(wordsOf(section.strong)),
      explained: section.terms.map((term) => new Set(wordsOf(term))) };
  };

  // A word counts by how rare it is: by how often it comes in a section of
  // this length (k and b as in Okapi BM25), and most where it is in the title
  // of what is told.
  function worth(section, word, rare) {
    const often = section.count.get(word) ?? 0;
    const length = 1.5 * (0.4 + 0.6 * section.length / 120);
    const told = !ASIDE.test(section.title);
    return rare * (4 * often / (often + length || 1)
      + 3 * (told && section.titleWords.has(word)) + 1.6 * section.subjects.has(word)
      + 2 * section.fileWords.has(word) // what a chapter is for short
      + 0.6 * section.strongWords.has(word)
      + 0.5 * section.chapterWords.has(word));
  }

  // Where the book marks a term first, it says what it is. Half of a term's
  // words are enough: "head" for "attention head".
  const explains = ({ explained }, words) => explained.some((term) =>
    2 * words.length >= term.size && words.every((word) => term.has(word)));

  // Several words that are nearly all of a title: that is what it is about.
  const called = ({ title, titleWords }, words) => words.length > 1
    && titleWords.size <= words.length + 4 && !ASIDE.test(title)
    && words.every((word) => titleWords.has(word));

  const contents = (query) => {
    const said = [...new Set(wordsOf(query))];
    const asked = said.filter((word) => !ASKING.has(word));
    return asked.length ? asked : said;
  };

  function find(query) {
    const words = contents(query);
    const rare = words.map((word) => Math.log(1 + sections.length
      / (1 + sections.filter(({ count }) => count.has(word)).length)));
    const rated = sections.map((section) => {
      const worths = words.map((word, i) => worth(section, word, rare[i]));
      const score = worths.reduce((sum, x) => sum + x, 0)
        + 5 * worths.every(Boolean) + 9 * explains(section, words)
        + 4 * called(section, words)
        - 7 * ASIDE.test(section.title)
        - 8 * LAST.test(`/${section.address}`)
        - 0.01 * section.place; // what comes first is told first
      return { section, score, some: worths.some(Boolean) };
    });
    const some = rated.filter((one) => one.some);
    some.sort((a, b) => b.score - a.score);
    const enough = some.length ? some[0].score / 4 : 0;
    return some.filter(({ score }, i) => i < 3 || score > enough)
      .map(({ section }) => section);
  }

  // A subscript k as the page's own letter: its font has no such one.
  const lowered = (text) => text.split(/(ₖ)/).filter(Boolean).map((piece) => {
    if (piece !== "ₖ") return piece;
    const letter = document.createElement("sub");
    letter.className = "letter";
    letter.textContent = "k";
    return letter;
  });

  function element(tag, text, look = "") {
    const node = document.createElement(tag);
    node.append(...lowered(text));
    if (look) node.className = look;
    return node;
  }

  // Each of the words is marked. What has all in its title is quoted from its
  // beginning; anything else from a sentence that begins with one, or from just
  // before the first. A section that only holds others is quoted by the first.
  function quote({ text, place, titleWords }, words) {
    const quoted = text || (sections[place + 1]?.text ?? "");
    const pieces = quoted.split(/(?<=\s)/);
    const hits = pieces.map((piece) =>
      wordsOf(piece).some((word) => words.includes(word)));
    const near = Math.max(0, hits.indexOf(true) - 8);
    const begins = hits.findIndex((hit, i) => hit
      && /^\p{Lu}/u.test(pieces[i]) && /[.:?!]\s$/.test(pieces[i - 1] ?? "."));
    const first = words.every((word) => titleWords.has(word)) ? 0
      : near && begins >= 0 ? begins : near;
    const line = element("p", first ? "… " : "", "context");
    let length = 0;
    for (let i = first; i < pieces.length && length < QUOTED; i += 1) {
      line.append(...(hits[i] ? [element("mark", pieces[i].trimEnd())]
        : lowered(pieces[i])));
      if (hits[i]) line.append(" ");
      length += pieces[i].length;
    }
    if (length >= QUOTED) line.append("…");
    return line;
  }

  // A term of the glossary, if that is what is asked for: "what is GQA".
  const termOf = (query) => {
    const asked = [...contents(query)].sort().join();
    return window.searchTerms.find(({ forms }) => forms.some((form) =>
      [...new Set(wordsOf(form))].sort().join() === asked));
  };

  // What a term means, before where it is told: one need not go there.
  function define(term, [told]) {
    const box = element("p", "", "search-term");
    const name = element("a", term.name);
    name.href = term.address;
    const more = element("a", told.title);
    more.href = told.address;
    box.append(name, `: ${term.says} More: `, more, ".");
    document.getElementById("search-results").append(box);
  }

  function answer(query) {
    sections = window.searchSections.map(counted);
    const term = termOf(query);
    // First of all what the glossary leads to, if that is what is asked for.
    const leads = ({ address }) => address === term?.more;
    const sorted = find(query);
    const found = [...sections.filter(leads),
      ...sorted.filter((section) => !leads(section))];
    if (term && found.length) define(term, found);
    const list = element("ul", "", "search");
    for (const section of found.slice(0, SHOWN)) {
      const link = element("a", section.title);
      link.href = section.address;
      const item = element("li", "");
      item.append(link);
      if (section.chapter !== section.title)
        item.append(element("span", ` in ${section.chapter}`));
      item.append(quote(section, contents(query)));
      list.append(item);
    }
    const words = contents(query);
    const whole = found.some(({ count }) =>
      words.every((word) => count.has(word)));
    say(found.length === 0 ? `Nothing says “${query}”.`
      : (whole ? "" : `Nothing says all of “${query}”; some of it: `)
        + `${found.length} ${found.length === 1 ? "section" : "sections"}`
        + (found.length > SHOWN ? `, the first ${SHOWN} of them` : ""));
    document.getElementById("search-results").append(list);
  }

  function say(text) {
    const status = element("p", text, "search-summary");
    status.setAttribute("role", "status");
    document.getElementById("search-results").append(status);
  }

  const query = new URLSearchParams(location.search).get("q") ?? "";
  for (const field of document.querySelectorAll("input[name=q]"))
    field.value = query;
  if (!query.trim()) return;
  const texts = element("script", "");
  texts.src = new URL("search-sections.js", document.currentScript.src);
  texts.onload = () => answer(query);
  texts.onerror = () => say("The book’s text could not be fetched.");
  document.head.append(texts);
})();
