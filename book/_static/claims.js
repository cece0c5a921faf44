// The page of claims shows the rows of one verdict, of one chapter, or both. On
// a phone, each verdict's are folded.
(() => {
  const { narrow, fold: folding, count } = window.phoneFolds;

  function choice(name, options) {
    const label = document.createElement("label");
    const select = document.createElement("select");
    label.append(`${name} `, select);
    select.append(new Option("all", ""));
    for (const [value, words] of options)
      select.append(new Option(words, value));
    return [label, select];
  }

  function folded(table) {
    const box = table.closest(".pst-scrollable-table-container") ?? table;
    return folding([box], "claims-fold");
  }

  function start() {
    const tables = [...document.querySelectorAll("table.claims")];
    if (!tables.length) return;
    const rows = tables.flatMap((table) => [...table.tBodies[0].rows]);
    const chapters = new Map(rows.map((row) => {
      const link = row.querySelector(".claim-chapter a");
      return [link.getAttribute("href"), link.textContent];
    }));
    const verdicts = tables.map((table) => {
      const section = table.closest("section");
      return [section.id, section.querySelector("h2").firstChild.textContent];
    });
    const [verdictLabel, verdict] = choice("Verdict", verdicts);
    const [chapterLabel, chapter] = choice("Chapter", chapters);
    const folds = narrow() ? tables.map(folded) : [];
    const told = document.createElement("output");
    const form = document.createElement("form");
    form.className = "claims-filter";
    form.append(verdictLabel, chapterLabel, told);
    document.querySelector("table.claims-count").closest(
      ".pst-scrollable-table-container, table").after(form);

    function show() {
      let shown = 0;
      for (const table of tables) {
        const section = table.closest("section");
        let here = 0;
        for (const row of table.tBodies[0].rows) {
          const link = row.querySelector(".claim-chapter a");
          const of = link.getAttribute("href");
          row.hidden = (chapter.value && of !== chapter.value) ||
            (verdict.value && section.id !== verdict.value);
          here += !row.hidden;
        }
        section.hidden = !here;
        const head = section.querySelector(".claims-fold > summary");
        if (head) head.textContent = count(here, "claim");
        shown += here;
      }
      told.textContent = `${shown} of ${rows.length} claims`;
    }

    // Whoever follows a link to a row gets to see it.
    function reach() {
      const place = document.getElementById(location.hash.slice(1));
      const fold = place?.closest(".claims-fold");
      const filtered = place?.closest("[hidden]");
      if (!filtered && (fold?.open ?? true)) return;
      if (filtered) verdict.value = chapter.value = "";
      show();
      if (fold) fold.open = true;
      place.scrollIntoView();
    }

    form.addEventListener("change", () => {
      show();
      for (const fold of folds)
        fold.open = Boolean(verdict.value || chapter.value);
    });
    addEventListener("hashchange", reach);
    show();
    reach();
  }

  addEventListener("DOMContentLoaded", start);
})();
