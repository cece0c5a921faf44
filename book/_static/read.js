// What was read has a mark: a section in a chapter's contents once its end has
// been in the window for a moment, and on the first page, in a chapter's card,
// how many of its sections. Kept in this browser alone, until it is told to
// forget.
(() => {
  const KEY = "read ";
  const MOMENT = 1000; // ms; who flies past has not read
  const chapter = (path) => KEY + path.split("/book/").at(-1);
  const line = ".card-minutes";

  function known(key) {
    try {
      return JSON.parse(localStorage.getItem(key)) ?? { read: [], of: 0 };
    } catch { // where nothing may be kept
      return { read: [], of: 0 };
    }
  }

  function keep(key, value) {
    try {
      localStorage.setItem(key, JSON.stringify(value));
    } catch { /* then the mark is gone with the page */ }
  }

  // The sections of a chapter that its contents name, each with its entry.
  function entries() {
    const links = document.querySelectorAll(
      ".bd-toc-nav .toc-h2 > a[href^='#']");
    return [...links].flatMap((link) => {
      const id = decodeURIComponent(link.hash.slice(1));
      const section = document.getElementById(id);
      return section ? [{ id, link, section }] : [];
    });
  }

  function mark({ link }) {
    if (link.querySelector(".was-read")) return;
    const told = document.createElement("span");
    told.className = "was-read";
    told.setAttribute("role", "img");
    told.setAttribute("aria-label", "read");
    link.append(told);
  }

  function follow() {
    const all = entries();
    const key = chapter(location.pathname);
    const ids = new Set(all.map(({ id }) => id));
    const read = new Set(known(key).read.filter((id) => ids.has(id)));
    all.filter(({ id }) => read.has(id)).forEach(mark);
    const waiting = new Map();
    const watch = new IntersectionObserver((seen) => {
      for (const { target, isIntersecting } of seen) {
        clearTimeout(waiting.get(target));
        if (!isIntersecting) continue;
        const entry = all.find(({ section }) =>
          section.lastElementChild === target);
        waiting.set(target, setTimeout(() => {
          read.add(entry.id);
          mark(entry);
          keep(key, { read: [...read], of: all.length });
          watch.unobserve(target);
        }, MOMENT));
      }
    });
    for (const { id, section } of all)
      if (!read.has(id)) watch.observe(section.lastElementChild);
  }

  function tell() {
    const cards = [...document.querySelectorAll(".cards > li")]
      .filter((card) => card.querySelector(line))
      .map((card) => ({ card, key: chapter(card.querySelector("a").pathname) }))
      .filter(({ key }) => known(key).read.length);
    for (const { card, key } of cards) {
      const { read, of } = known(key);
      const told = document.createElement("span");
      told.className = "card-read";
      told.textContent = read.length === of ? " · read"
        : ` · ${read.length} of ${of} sections read`;
      card.querySelector(line).append(told);
    }
    if (!cards.length) return;
    const forget = document.createElement("button");
    forget.type = "button";
    forget.textContent = "Forget what I have read";
    forget.addEventListener("click", () => {
      for (const { key } of cards) localStorage.removeItem(key);
      document.querySelectorAll(".card-read").forEach((e) => e.remove());
      note.remove();
    });
    const note = document.createElement("p");
    note.className = "read-note not-on-paper";
    note.append("What you have read is known to this browser alone. ", forget);
    [...document.querySelectorAll(".cards")].at(-1).after(note);
  }

  if (document.querySelector(line)) tell();
  else if (document.querySelector("p.reading-time")) follow();
})();
