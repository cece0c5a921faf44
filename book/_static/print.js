// On paper a page is light, whatever it is on the screen. What is folded there
// stays folded but for the answers to predictions, unless the page is printed
// whole. The solutions stand after the text, each under the name of its
// exercise; so do a lab's answers. Where links lead is told in notes at the end.
(() => {
  const page = document.documentElement.dataset;
  const FOLDED = "details:not([open], .predicted, .lab-place *)";
  const ASIDE = "details:is(.claims-box, .remedy):not([open])"; // always
  let undo = null;

  const made = (tag, look, ...parts) => {
    const node = document.createElement(tag);
    node.className = look;
    node.append(...parts);
    return node;
  };

  // An exercise on paper is answered in words; its cells test them.
  function proved(solution) {
    const all = [solution];
    if (folded(solution) === "Answer")
      while (all.at(-1).nextElementSibling?.matches("div.cell"))
        all.push(all.at(-1).nextElementSibling);
    return all;
  }

  function moved(solution, last) {
    const exercise = solution.parentElement.closest("section");
    const head = exercise.querySelector("h2, h3");
    const name = made("h3", "", head.firstChild.textContent);
    const all = proved(solution);
    const places = all.map((e) => {
      const place = document.createComment("its solution is at the end");
      e.before(place);
      return place;
    });
    last.append(name, ...all);
    return () => places.forEach((place, i) => place.replaceWith(all[i]));
  }

  const folded = (e) => e.matches("details.answer") && !solution(e)
    && e.firstChild.textContent;

  // The solutions of all exercises that are printed.
  function solutions(article, steps) {
    const last = made("section", "solutions-on-paper",
      made("h2", "", "Solutions"));
    const solved = [...article.querySelectorAll(
      "section > :is(h4, details.answer)")]
      .filter((e) => e.firstChild.textContent === "Solution"
        || ["Answer", "Answers"].includes(folded(e)))
      .filter((e) => !e.parentElement.closest(".left-out"));
    for (const e of solved)
      steps.push(moved(e.matches("h4") ? e.parentElement : e, last));
    if (solved.length) article.append(last);
    steps.push(() => last.remove());
  }

  // What is not printed, answers aside: they go to the solutions.
  function leave(article, steps) {
    const left = [...article.querySelectorAll(
      page.paper === "whole" ? ASIDE : FOLDED)]
      .filter((e) => !e.matches(".answer") && !solution(e));
    for (const e of left) e.classList.add("left-out");
    steps.push(() => left.forEach((e) => {
      e.classList.remove("left-out");
      if (e.classList.length === 0) e.removeAttribute("class");
    }));
  }

  const solution = (e) => {
    const head = e.closest("section")?.querySelector(":scope > h4");
    return head?.firstChild.textContent === "Solution";
  };

  // Where links lead: an address, or a work, which the link has as its title.
  function notes(article, steps) {
    const list = document.createElement("ol");
    const numbers = new Map();
    for (const link of article.querySelectorAll(
      "a[href*='bibliography.html#'], a[href^=http]:not(.citation *)")) {
      const told = link.title || decodeURI(link.href);
      if (link.closest(".left-out") || link.textContent === told) continue;
      if (!numbers.has(told)) {
        numbers.set(told, numbers.size + 1);
        list.append(made("li", "", told));
      }
      const mark = made("sup", "note-mark", String(numbers.get(told)));
      link.after(mark);
      steps.push(() => mark.remove());
    }
    const section = made("section", "notes-on-paper",
      made("h2", "", "Notes"), list);
    if (numbers.size) article.append(section);
    steps.push(() => section.remove());
  }

  // On each page that a table goes on to, its head is painted again, and with
  // it words, but no buttons.
  function heads(article, steps) {
    for (const button of article.querySelectorAll("thead button")) {
      const words = document.createTextNode(button.textContent);
      button.replaceWith(words);
      steps.push(() => words.replaceWith(button));
    }
  }

  // Code in the parts that blank lines make of it, each of four lines at least
  // and with its own rule.
  function parted(pre) {
    const ends = [...pre.childNodes].filter((e) => e.nodeType === 3)
      .flatMap((text) => [...text.data.matchAll(/\n\n+/g)]
        .map((blank) => [text, blank.index + blank[0].length]));
    const range = document.createRange();
    const last = [pre, pre.childNodes.length];
    const between = (from, to) => {
      range.setStart(...from);
      range.setEnd(...to);
      return range.toString().trim().split("\n").length;
    };
    let start = [pre, 0];
    const kept = ends.filter((end) => {
      const parts = between(start, end) >= 4 && between(end, last) >= 4;
      if (parts) start = end;
      return parts;
    });
    start = [pre, 0];
    return [...kept, last].map((end) => {
      between(start, end);
      start = end;
      const part = pre.cloneNode(false);
      part.removeAttribute("id");
      part.append(range.cloneContents());
      return part;
    });
  }

  const lines = (pre) => pre.textContent.trim().split("\n").length;

  // An example of no more is whole.
  function short(article, steps) {
    for (const pre of article.querySelectorAll("div.highlight pre")) {
      if (pre.closest(".cell") || lines(pre) > 12) continue;
      pre.classList.add("few-lines");
      steps.push(() => {
        pre.classList.remove("few-lines");
        if (!pre.className) pre.removeAttribute("class");
      });
    }
  }

  // Code of more lines may go on on the next page; see custom.css.
  function long(article, steps) {
    for (const pre of article.querySelectorAll("div.cell_input pre")) {
      if (lines(pre) <= 12) continue;
      const code = pre.closest("div.cell_input");
      code.classList.add("long");
      const parts = parted(pre);
      pre.replaceWith(...parts);
      steps.push(() => {
        code.classList.remove("long");
        parts[0].replaceWith(pre);
        for (const part of parts) part.remove();
      });
    }
  }

  // Marks in more than three rows stand after the paragraph that they are of.
  function strips(article, steps) {
    for (const strip of article.querySelectorAll("p a .conclusion-strip")) {
      if (strip.getAttribute("height") <= 19) continue;
      const place = document.createComment("its strip is at the end");
      strip.before(place);
      strip.closest("p").append(strip);
      steps.push(() => place.replaceWith(strip));
    }
  }

  function prepare() {
    if (undo) return;
    const { theme } = page;
    const article = document.querySelector("article.bd-article");
    const steps = [() => { page.theme = theme; }];
    page.theme = "light";
    leave(article, steps);
    solutions(article, steps);
    notes(article, steps);
    heads(article, steps);
    strips(article, steps);
    short(article, steps);
    long(article, steps);
    undo = () => steps.forEach((step) => step());
  }

  function restore() {
    undo?.();
    undo = null;
    delete page.paper;
  }

  // The button for all of a page; see paper.py.
  window.printWhole = () => {
    page.paper = "whole";
    window.print();
  };

  // An address with ?print in it, from the first page, opens the window for
  // printing once: who loads the page anew, or comes back to it, reads it.
  if (new URLSearchParams(location.search).has("print"))
    addEventListener("load", async () => {
      history.replaceState(history.state, "",
        location.pathname + location.hash);
      await document.fonts.ready;
      window.print();
    });

  addEventListener("beforeprint", prepare);
  addEventListener("afterprint", restore);
  matchMedia("print").addEventListener("change", ({ matches }) =>
    (matches ? prepare : restore)());
})();
