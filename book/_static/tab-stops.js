// Who has no mouse must still be able to scroll a wide formula, table or
// picture: give a tab stop to those that are wider than the page, and only to
// those. What is to be read there is said with it, if it is a table.
(() => {
  const wide = ".math, .katex-display, .pst-scrollable-table-container, "
    + ".cell_output, .printed-table, .panels";
  const tables = ".pst-scrollable-table-container, .printed-table";
  const name = (box, wider) => {
    const told = { role: "group", "aria-label": "Table, scrolls sideways" };
    for (const [attribute, value] of Object.entries(told))
      if (wider) box.setAttribute(attribute, value);
      else box.removeAttribute(attribute);
  };
  // A little too wide, a table's letters stand closer: it need not scroll.
  const little = (box) => Math.max(13, 0.045 * box.clientWidth); // pixels
  const setCloser = (box, scrolls) => {
    box.classList.remove("tight");
    const over = scrolls ? box.scrollWidth - box.clientWidth : 0;
    box.classList.toggle("tight", over > 0 && over < little(box));
  };
  const update = () => {
    for (const box of document.querySelectorAll(wide)) {
      const scrolls = /auto|scroll/.test(getComputedStyle(box).overflowX);
      if (box.matches(".printed-table")) setCloser(box, scrolls);
      const wider = scrolls && box.scrollWidth > box.clientWidth;
      if (wider) box.tabIndex = 0;
      else box.removeAttribute("tabindex");
      if (box.matches(tables)) name(box, wider);
    }
  };
  update();
  addEventListener("resize", update);
  document.fonts?.ready.then(update);
})();
