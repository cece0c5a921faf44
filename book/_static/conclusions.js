// On a phone each chapter's conclusions are folded, and whoever follows a link
// to a row gets to see it.
(() => {
  const { narrow, fold, count } = window.phoneFolds;

  function folded(section) {
    const rows = section.querySelectorAll(":scope > .conclusion-row");
    const made = fold([...rows], "conclusions-fold");
    made.firstChild.textContent = count(rows.length, "conclusion");
  }

  function reach() {
    const place = document.getElementById(location.hash.slice(1));
    const closed = place?.closest(".conclusions-fold:not([open])");
    if (!closed) return;
    closed.open = true;
    place.scrollIntoView();
  }

  addEventListener("DOMContentLoaded", () => {
    if (!narrow()) return;
    const sections = document.querySelectorAll("section:has(> .conclusion-row)");
    for (const section of sections) folded(section);
    addEventListener("hashchange", reach);
    reach();
  });
})();
