// Who has no mouse must still be able to scroll a wide formula, table or
// picture: give a tab stop to those that are wider than the page, and only to
// those.
(() => {
  const wide = ".math, .katex-display, .pst-scrollable-table-container, "
    + ".cell_output, .printed-table, .panels";
  const update = () => {
    for (const box of document.querySelectorAll(wide)) {
      const scrolls = /auto|scroll/.test(getComputedStyle(box).overflowX);
      if (scrolls && box.scrollWidth > box.clientWidth) box.tabIndex = 0;
      else box.removeAttribute("tabindex");
    }
  };
  update();
  addEventListener("resize", update);
  document.fonts?.ready.then(update);
})();
