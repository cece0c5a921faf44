// On a phone the record of conclusions is a hundred screens: each chapter's are
// folded, and whoever follows a link to a row gets to see it.
(() => {
  function fold(section) {
    const rows = section.querySelectorAll(":scope > .conclusion-row");
    const fold = document.createElement("details");
    const head = document.createElement("summary");
    fold.className = "conclusions-fold";
    head.textContent = rows.length === 1
      ? "1 conclusion" : `${rows.length} conclusions`;
    rows[0].before(fold);
    fold.append(head, ...rows);
  }

  function reach() {
    const place = document.getElementById(location.hash.slice(1));
    const folded = place?.closest(".conclusions-fold:not([open])");
    if (!folded) return;
    folded.open = true;
    place.scrollIntoView();
  }

  addEventListener("DOMContentLoaded", () => {
    if (!matchMedia("(max-width: 600px)").matches) return;
    const sections = document.querySelectorAll("section:has(> .conclusion-row)");
    for (const section of sections) fold(section);
    addEventListener("hashchange", reach);
    reach();
  });
})();
